package operator

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/model/known"
)

// baseLine is one base of a report.
type baseLine struct {
	Name      string `json:"name"`
	Revision  string `json:"revision,omitempty"`
	Format    string `json:"format"`
	SHA256    string `json:"sha256"`           // of the blob that devices get
	Tokenizer string `json:"tokenizer_sha256"` // of the tokenizer within it
	Known     string `json:"known,omitempty"`  // what a list calls it
}

func lineOf(b known.Base) baseLine {
	return baseLine{Name: b.Name, Revision: strings.TrimPrefix(b.Revision, "-"), Format: b.Format, SHA256: fmt.Sprintf("%x", b.SHA256), Tokenizer: fmt.Sprintf("%x", b.Tokenizer)}
}

func newBaseListCmd(a *command.App) *cobra.Command {
	var f command.KnownFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the published bases that devices know by hash",
		Long: `List the bases that a device's policy calls known: the program's own list, and a
signed one beside it. A job over another base is joined by owners who say so.`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			more, err := f.List()
			if err != nil {
				return err
			}
			var lines []baseLine
			for _, b := range append(known.Default(), more...) {
				lines = append(lines, lineOf(b))
			}
			return a.Emit(lines, func(w io.Writer) error { return printBases(w, lines) })
		},
	}
	f.Add(cmd.Flags())
	return cmd
}

func printBases(w io.Writer, lines []baseLine) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		revision := l.Revision[:min(12, len(l.Revision))]
		if revision == "" {
			revision = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", l.Name, revision, l.Format, l.SHA256, l.Known)
	}
	return t.Flush()
}

func newBaseVerifyCmd(a *command.App) *cobra.Command {
	var f command.KnownFlags
	cmd := &cobra.Command{
		Use:   "verify NAME|FOLDER...",
		Short: "Make bases' hashes of a cached model or a folder, and compare them with the known ones",
		Long: `Make the blob that devices get of a model in the local Hugging Face cache, or of a
folder, in both forms, and look its hash up. Exit code 1 where a list has neither.
Embedded bases are starling/default and starling/documents.`,
		Example: "  starling base verify sentence-transformers/all-MiniLM-L6-v2",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf("%s takes the names or folders of bases", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			more, err := f.List()
			if err != nil {
				return err
			}
			var lines []baseLine
			var missing []string
			for _, name := range args {
				forms, err := bases.Forms(name)
				if err != nil {
					return err
				}
				found := false
				for _, b := range forms {
					line := lineOf(b)
					if k, ok := append(known.Default(), more...).Find(b.SHA256); ok {
						line.Known, found = k.String(), true
					}
					lines = append(lines, line)
				}
				if !found {
					missing = append(missing, name)
				}
			}
			if err := a.Emit(lines, func(w io.Writer) error { return printBases(w, lines) }); err != nil {
				return err
			}
			if len(missing) > 0 {
				return fmt.Errorf("%s: in no list; devices that join a job over it ask their owners", strings.Join(missing, ", "))
			}
			return nil
		},
	}
	f.Add(cmd.Flags())
	return cmd
}

func newBaseSignCmd(a *command.App) *cobra.Command {
	var key, name, revision string
	cmd := &cobra.Command{
		Use:   "sign --key FILE NAME|FOLDER...",
		Short: "Sign a list of bases, for devices that trust your key",
		Long: `Make the hashes of models and print a signed list of them, for 'starling join
--base-list'. The key is made where there is no such file; --base-key takes what is
printed of it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || key == "" || (name != "" || revision != "") && len(args) != 1 {
				return usage.Errorf("%s takes --key FILE and the names or folders of bases; --name and --revision are of one", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var l known.List
			for _, from := range args {
				forms, err := bases.Forms(from)
				if err != nil {
					return err
				}
				for _, b := range forms {
					if name != "" {
						b.Name = name
					}
					if revision != "" {
						b.Revision = revision
					}
					l = append(l, b)
				}
			}
			signer, err := signingKey(a.Stderr, key)
			if err != nil {
				return err
			}
			signed, err := l.Sign(signer)
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(signed)
			return err
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "file of the signing key, made where there is none")
	cmd.Flags().StringVar(&name, "name", "", "what the list calls the base, where it is a folder")
	cmd.Flags().StringVar(&revision, "revision", "", "its commit on the hub, where it is a folder")
	return cmd
}

// signingKey reads a key, or makes one and tells its public half.
func signingKey(w io.Writer, path string) (string, error) {
	b, err := named.Read(path, 1<<16)
	if err == nil {
		return strings.TrimSpace(string(b)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	signer, verifier, err := note.GenerateKey(rand.Reader, "starling-bases")
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if err := durable.Replace(path, []byte(signer+"\n"), 0o600); err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(w, "a new key, in %s; devices need --base-key %s\n", path, verifier)
	return signer, err
}
