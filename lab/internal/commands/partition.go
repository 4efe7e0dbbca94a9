package commands

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
	grids "github.com/starling-fl/starling/lab/report"
	"github.com/starling-fl/starling/lab/sweep"
)

// Partitioned describes the division of a file's training part.
type Partitioned struct {
	How      string          `json:"how"`
	Division *sweep.Division `json:"division"`
	Clients  int             `json:"clients"`
	Examples int             `json:"examples"`
	Least    int             `json:"least"`  // examples of a client
	Median   int             `json:"median"` // of them
	Most     int             `json:"most"`
	Classes  float64         `json:"classes"` // that a client with examples has, on average
	Labels   []string        `json:"labels"`
	Counts   [][]int         `json:"counts"` // a_ij of the clients shown: a row a label, a column a client
}

func newPartitionCmd(a *command.App) *cobra.Command {
	s := sweep.DefaultSettings()
	var columns dataset.Columns
	var plotFile string
	var show int
	cmd := &cobra.Command{
		Use:   "partition --data FILE",
		Short: "Show how a simulation divides a file: the examples of each class at each client",
		Long: `Divide a labelled file as starling simulate does under the same settings, and print
a_ij, the number of examples of class i at client j, for the first clients. --plot
draws them as discs, an .svg, a .pdf or a .png.`,
		Example: "  starling partition --data reviews.jsonl --alpha 0.1 --plot partition.svg",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if s.Data == "" {
				return usage.Errorf("--data is missing: the file whose division is shown")
			}
			if show < 1 {
				return usage.Errorf("--clients is %d, must be at least 1", show)
			}
			if plotFile != "" {
				if err := command.CheckFormat("plot", plotFile, "svg", "pdf", "png"); err != nil {
					return err
				}
			}
			s.SamplingRate, s.Cohort = 1, 0 // rounds are none of its business
			if err := s.Check(); err != nil {
				return usage.Wrap(err)
			}
			r, err := partitionOf(s, columns, show)
			if err != nil {
				return err
			}
			if plotFile != "" {
				p, err := grids.PartitionPlot(r.Labels, r.Counts)
				if err != nil {
					return err
				}
				data, err := p.File(plotFile)
				if err != nil {
					return err
				}
				if err := durable.Replace(plotFile, data, 0o644); err != nil {
					return err
				}
			}
			return a.Emit(r, r.print)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&s.Data, "data", "", "labelled file (.tsv, .csv, .jsonl, plain or .gz)")
	fl.IntVar(&s.Population, "population", s.Population, "registered clients N: a file is divided over no more")
	fl.Float64Var(&s.Alpha, "alpha", s.Alpha, "Dirichlet concentration that divides a file without users; smaller is more skewed")
	fl.IntVar(&s.Examples, "examples", s.Examples, "mean number of examples a client holds")
	divisionFlags(fl, &s)
	fl.Uint64Var(&s.Seed, "seed", 1, "seed of the division")
	fl.IntVar(&show, "clients", 20, "clients that are shown")
	fl.StringVar(&plotFile, "plot", "", "file to draw them in, .svg, .pdf or .png")
	command.ColumnFlags(fl, &columns)
	return cmd
}

// partitionOf divides the training part of a file.
func partitionOf(s sweep.Settings, columns dataset.Columns, show int) (*Partitioned, error) {
	data := labData{columns: columns}
	d, err := data.get(s.Source())
	if err != nil {
		return nil, err
	}
	if len(d.Labels) == 0 {
		return nil, usage.Errorf("%s: its examples have no labels: there are no classes to count", s.Data)
	}
	parts, how, err := d.Divide(s)
	if err != nil {
		return nil, err
	}
	counts := sweep.Counts(d.Train, parts)
	r := &Partitioned{How: how, Division: d.Spread(parts, s.Population), Clients: len(parts), Labels: d.Labels}
	var sizes []int
	holding, classes := 0, 0
	for j, p := range parts {
		sizes, r.Examples = append(sizes, len(p)), r.Examples+len(p)
		if len(p) > 0 {
			holding++
		}
		for i := range counts {
			if counts[i][j] > 0 {
				classes++
			}
		}
	}
	slices.Sort(sizes)
	r.Least, r.Median, r.Most = sizes[0], sizes[len(sizes)/2], sizes[len(sizes)-1]
	if holding > 0 {
		r.Classes = float64(classes) / float64(holding)
	}
	for _, row := range counts {
		r.Counts = append(r.Counts, row[:min(show, len(row))])
	}
	return r, nil
}

func (r *Partitioned) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\n%s\n%d to %d examples each, %d in the middle, of %.1f classes on average\n\n",
		r.How, r.Division, r.Least, r.Most, r.Median, r.Classes)
	for i, l := range r.Labels {
		fmt.Fprintf(t, "%s\t", l)
		for _, n := range r.Counts[i] {
			fmt.Fprintf(t, "%d\t", n)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
