package commands

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/files"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/lab/internal/paintings"
)

type paintingsReport struct {
	Folder    string `json:"folder"`
	Artists   int    `json:"artists"`
	Paintings int    `json:"paintings"`
}

func newPaintingsCmd(a *command.App) *cobra.Command {
	c := paintings.Config{Seed: 1, Split: "train", Artists: 23, Each: 100, Side: 32}
	var out string
	cmd := &cobra.Command{
		Use:   "paintings --out DIR",
		Short: "Write generated paintings as a folder of images, a folder for each artist, to try things with",
		Long: `Write generated paintings as PNG files, in a folder for each artist, as WikiArt has
them: who painted it is the label. An artist has a palette, a stroke and a canvas of its
own, which its paintings vary. Another --split has other paintings by the same artists.
--minor adds artists with a third as many, which --min-per-class leaves out again.`,
		Example: "  starling lab paintings --out art && starling lab paintings --out art-test --split test --each 20\n  starling partition --data art --min-per-class 100",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return usage.Errorf("--out is required: the folder to write to")
			}
			set, err := paintings.Generate(c)
			if err != nil {
				return usage.Wrap(err)
			}
			if err := writePaintings(out, set); err != nil {
				return err
			}
			r := paintingsReport{out, len(set.Labels), len(set.Examples)}
			return a.Emit(r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%d paintings by %d artists in %s\n", r.Paintings, r.Artists, r.Folder)
				return err
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&out, "out", "", "folder to write to")
	fl.Uint64Var(&c.Seed, "seed", c.Seed, "seed of the generator")
	fl.StringVar(&c.Split, "split", c.Split, "train, test, or any other name")
	fl.IntVar(&c.Artists, "artists", c.Artists, "artists")
	fl.IntVar(&c.Each, "each", c.Each, "paintings of each of them, at least; up to twice as many")
	fl.IntVar(&c.Minor, "minor", c.Minor, "further artists, with a third as many")
	fl.IntVar(&c.Side, "side", c.Side, "side of a painting in pixels")
	return cmd
}

// writePaintings makes a folder for each label.
func writePaintings(out string, set *dataset.Set) error {
	for i, e := range set.Examples {
		path := filepath.Join(out, set.Labels[e.Label], fmt.Sprintf("%05d.png", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := files.WritePNG(path, e.Image); err != nil {
			return err
		}
	}
	return nil
}
