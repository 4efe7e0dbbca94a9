package operator

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/dossier"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/engine/plugins"
	"github.com/starling-fl/starling/internal/app/exposure"
)

func newAuditCmd(a *command.App, p Plots) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Attack a released model: find its training documents, and what it kept of them",
		Long: `Attack a released model as somebody would who wants to know whose documents it was
trained on (membership), or what it kept of them (memorization), and bound its epsilon
from below by canary documents (epsilon). For whoever ran the job, or an auditor: it
takes examples of members, and of others like them whom the model has not seen. An
attack that fails proves nothing; one that succeeds does.`,
	}
	cmd.AddCommand(newAuditMembershipCmd(a), newAuditMemorizationCmd(a), newAuditEpsilonCmd(a))
	job := newPrivacyAuditCmd(a, p)
	job.Use, job.Short = "job", "Run a job with synthetic canaries: the same as starling privacy audit"
	cmd.AddCommand(job)
	return cmd
}

// auditedFlags say what is attacked, and by whose examples.
type auditedFlags struct {
	exposure.Files
	html   string
	choice engine.Flags
}

func (f *auditedFlags) add(cmd *cobra.Command) {
	f.choice = plugins.Flags()
	fl := cmd.Flags()
	fl.StringVar(&f.Checkpoint, "checkpoint", "", "folder of the released adapter (required)")
	fl.StringVar(&f.Rank, "rank", "best", "rank to attack, or best: the one that validation chose")
	fl.StringVar(&f.Start, "start", "", "folder of the adapter that training began with, where it was none of the base's own")
	fl.StringVar(&f.Members, "members", "", "labelled file of those it was trained on")
	fl.StringVar(&f.Others, "others", "", "labelled file of others like them")
	fl.StringVar(&f.Data, "data", "", "in place of both: a labelled file of all, with --in")
	fl.StringVar(&f.In, "in", "", "JSON list of the names of those in --data that it was trained on")
	fl.StringVar(&f.By, "by", "", "whose membership is attacked: provider, user or example (default: the first that the files name)")
	fl.StringVar(&f.html, "html", "", "also write the findings to FILE.html, one page that can be filed")
	command.ColumnFlags(fl, &f.Columns)
	f.choice.Add(fl)
}

// open reads all of it.
func (f *auditedFlags) open(a *command.App) (*exposure.Audit, error) {
	if f.html != "" {
		if err := command.CheckFormat("html", f.html, "html"); err != nil {
			return nil, err
		}
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	return f.Open(a.Version, command.Commit(), f.choice.Open, a.Stderr)
}

// emit writes the page, where one was asked for, and prints the report.
func (f *auditedFlags) emit(a *command.App, report any, d dossier.Dossier) error {
	if f.html == "" {
		return a.Emit(report, func(w io.Writer) error { return d.Text(w) })
	}
	if err := d.File(f.html); err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "page: %s\n", f.html)
	return a.Emit(report, func(w io.Writer) error { return d.Text(w) })
}
