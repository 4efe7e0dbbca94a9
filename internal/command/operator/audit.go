package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/dossier"
	"github.com/starling-fl/starling/internal/engine"
	"github.com/starling-fl/starling/internal/engine/plugins"
	"github.com/starling-fl/starling/internal/exposure"
	"github.com/starling-fl/starling/internal/fleetdata"
	"github.com/starling-fl/starling/model"
)

func newAuditCmd(a *command.App, p Plots) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Attack a released model: whose documents was it trained on, what did it keep of them?",
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
	checkpoint, rank, start       string
	members, others, data, in, by string
	html                          string
	columns                       dataset.Columns
	choice                        engine.Flags
}

func (f *auditedFlags) add(cmd *cobra.Command) {
	f.choice = plugins.Flags()
	fl := cmd.Flags()
	fl.StringVar(&f.checkpoint, "checkpoint", "", "folder of the released adapter (required)")
	fl.StringVar(&f.rank, "rank", "best", "rank to attack, or best: the one that validation chose")
	fl.StringVar(&f.start, "start", "", "folder of the adapter that training began with, where it was none of the base's own")
	fl.StringVar(&f.members, "members", "", "labelled file of those it was trained on")
	fl.StringVar(&f.others, "others", "", "labelled file of others like them")
	fl.StringVar(&f.data, "data", "", "in place of both: a labelled file of all, with --in")
	fl.StringVar(&f.in, "in", "", "JSON list of the names of those in --data that it was trained on")
	fl.StringVar(&f.by, "by", "", "whose membership is attacked: provider, user or example (default: the first that the files name)")
	fl.StringVar(&f.html, "html", "", "also write the findings to FILE.html, one page that can be filed")
	command.ColumnFlags(fl, &f.columns)
	f.choice.Add(fl)
}

// audited is what was attacked, for the record.
type audited struct {
	Checkpoint    string        `json:"checkpoint"`
	AdapterSHA256 string        `json:"adapter_sha256"`
	BaseSHA256    string        `json:"base_sha256"`
	Job           string        `json:"job,omitempty"`
	Task          string        `json:"task"`
	Rank          int           `json:"rank"`
	Privacy       string        `json:"privacy,omitempty"` // what the checkpoint says of itself
	Start         string        `json:"start,omitempty"`
	Files         []auditedFile `json:"files"`
	By            string        `json:"by"`
	Members       int           `json:"members"`
	Others        int           `json:"others"`
	Examples      int           `json:"examples"`
	Engine        string        `json:"engine"`
	Version       string        `json:"version"`
	Commit        string        `json:"commit,omitempty"`
}

type auditedFile struct {
	What   string `json:"what"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// open reads all of it.
func (f *auditedFlags) open(a *command.App) (*exposure.Subject, *exposure.People, *audited, error) {
	if f.html != "" {
		if err := command.CheckFormat("html", f.html, "html"); err != nil {
			return nil, nil, nil, err
		}
	}
	two, one := f.members != "" && f.others != "", f.data != "" && f.in != ""
	if two == one || (f.members != "") != (f.others != "") || (f.data != "") != (f.in != "") {
		return nil, nil, nil, command.Usagef("want --members and --others, a file each, or --data with --in")
	}
	ck, err := command.ReadReleased(f.checkpoint)
	if err != nil {
		return nil, nil, nil, err
	}
	s := &exposure.Subject{Checkpoint: ck, Told: a.Stderr}
	if s.Rank, err = command.ChooseRank(ck, f.rank); err != nil {
		return nil, nil, nil, err
	}
	r := &audited{Checkpoint: f.checkpoint, BaseSHA256: ck.BaseSHA256, Job: ck.Job, Task: ck.Method.Task.String(), Rank: s.Rank,
		Privacy: ck.Privacy, Start: f.start, Version: a.Version, Commit: command.Commit()}
	if f.start != "" {
		from, err := command.ReadReleased(f.start)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("--start: %w", err)
		}
		if from.BaseSHA256 != ck.BaseSHA256 {
			return nil, nil, nil, fmt.Errorf("--start: it is of the base %s, the released adapter of %s", from.BaseSHA256, ck.BaseSHA256)
		}
		s.Start = from.Adapter
	}
	p, err := f.people(ck, r)
	if err != nil {
		return nil, nil, nil, err
	}
	if s.Engine, err = f.choice.Open(); err != nil {
		return nil, nil, nil, err
	}
	r.Engine, r.By, r.Examples = s.Engine.Name, p.By, len(p.Examples)
	r.Members, r.Others = p.Count()
	if r.AdapterSHA256, err = sha256Of(filepath.Join(f.checkpoint, model.AdapterFile)); err != nil {
		return nil, nil, nil, err
	}
	return s, p, r, s.Open()
}

func (f *auditedFlags) people(ck *model.Checkpoint, r *audited) (*exposure.People, error) {
	load := func(what, path string) (*dataset.Set, error) {
		columns := f.columns
		if ck.Method.Task.TellsTokens() {
			columns.Unlabelled = true
		}
		set, err := command.LoadLabelled(path, columns)
		if err != nil {
			return nil, err
		}
		if set, err = set.Relabel(ck.Labels); err != nil {
			return nil, err
		}
		sum, err := fleetdata.Hash(path, columns, set)
		r.Files = append(r.Files, auditedFile{what, path, sum})
		return set, err
	}
	if f.data == "" {
		members, err := load("members", f.members)
		if err != nil {
			return nil, err
		}
		others, err := load("others", f.others)
		if err != nil {
			return nil, err
		}
		return exposure.Apart(members, others, f.by)
	}
	all, err := load("examples", f.data)
	if err != nil {
		return nil, err
	}
	in, err := exposure.ReadNames(f.in)
	if err != nil {
		return nil, err
	}
	sum, err := sha256Of(f.in)
	if err != nil {
		return nil, err
	}
	r.Files = append(r.Files, auditedFile{"members' names", f.in, sum})
	return exposure.Among(all, in, f.by)
}

func sha256Of(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// facts are what a dossier says of it.
func (r *audited) facts(more ...dossier.Fact) []dossier.Fact {
	out := []dossier.Fact{{Name: "model", Value: fmt.Sprintf("%s, task %s, rank %d", r.Checkpoint, r.Task, r.Rank)}}
	add := func(name, value string) {
		if value != "" {
			out = append(out, dossier.Fact{Name: name, Value: value})
		}
	}
	add("job", r.Job)
	add("privacy", r.Privacy)
	add("adapter", "SHA-256 "+r.AdapterSHA256)
	add("base", "SHA-256 "+r.BaseSHA256)
	if r.Start == "" {
		add("compared to", "the base as training begins with it")
	} else {
		add("compared to", r.Start)
	}
	for _, f := range r.Files {
		add(f.What, fmt.Sprintf("%s, SHA-256 %s", f.Path, f.SHA256))
	}
	add("people", fmt.Sprintf("%d members and %d others, each a %s; %d examples", r.Members, r.Others, r.By, r.Examples))
	out = append(out, more...)
	program := "starling " + r.Version
	if r.Commit != "" && !strings.Contains(r.Version, r.Commit[:min(7, len(r.Commit))]) {
		program += " of " + r.Commit
	}
	add("program", program+", engine "+r.Engine)
	return out
}

// file writes the page, where one was asked for.
func (f *auditedFlags) file(a *command.App, d dossier.Dossier) error {
	if f.html == "" {
		return nil
	}
	if err := d.File(f.html); err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "page: %s\n", f.html)
	return nil
}

// Limits of every attack.
var auditLimits = []string{
	"An attack that fails proves nothing: others may be stronger. What a model can give away at most is the epsilon it was trained with, if any.",
	"Members and others must be drawn alike, from one list by chance. Where they differ in anything else (when they came, what they bill), an attack may tell that instead; the base's figures show some of it, not all.",
}

func percent(x float64) string { return fmt.Sprintf("%.1f", 100*x) }

func between(low, high float64) string { return fmt.Sprintf("%.1f to %.1f", 100*low, 100*high) }
