package exposure

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/dossier"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/model"
)

// Files name a released model, and the examples of members and of others that an audit attacks it with.
type Files struct {
	Checkpoint string // folder of the released adapter
	Rank       string // a number, or "best": the one that validation chose
	Start      string // folder of the adapter that training began with; "" for the base's own
	Members    string // labelled file of those it was trained on
	Others     string // labelled file of others like them
	Data       string // in place of both: a labelled file of all, with In
	In         string // JSON list of the names of those in Data that it was trained on
	By         string // whose membership is attacked: "provider", "user" or "example"; "" for the first that the files name
	Columns    dataset.Columns
}

// Check refuses missing and superfluous files.
func (f *Files) Check() error {
	two, one := f.Members != "" && f.Others != "", f.Data != "" && f.In != ""
	if two == one || (f.Members != "") != (f.Others != "") || (f.Data != "") != (f.In != "") {
		return usage.Errorf("want --members and --others, a file each, or --data with --in")
	}
	return nil
}

// Audited names the attacked model and files.
type Audited struct {
	Checkpoint    string        `json:"checkpoint"`
	AdapterSHA256 string        `json:"adapter_sha256"`
	BaseSHA256    string        `json:"base_sha256"`
	Job           string        `json:"job,omitempty"`
	Task          string        `json:"task"`
	Rank          int           `json:"rank"`
	Privacy       string        `json:"privacy,omitempty"` // what the checkpoint says of itself
	Start         string        `json:"start,omitempty"`
	Files         []AuditedFile `json:"files"`
	By            string        `json:"by"`
	Members       int           `json:"members"`
	Others        int           `json:"others"`
	Examples      int           `json:"examples"`
	Engine        string        `json:"engine"`
	Version       string        `json:"version"`
	Commit        string        `json:"commit,omitempty"`
}

// AuditedFile is a file that an audit read.
type AuditedFile struct {
	What   string `json:"what"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Audit is an attack's input: a released model, and the people whose membership or documents are attacked.
type Audit struct {
	Audited *Audited
	subject *subject
	people  *People
}

// Open reads all of it. The engine is opened once the files are read; told hears how far long work is. The version is that of
// this program.
func (f *Files) Open(version, commit string, open func() (engine.Engine, error), told io.Writer) (*Audit, error) {
	ck, err := bases.Released(f.Checkpoint)
	if err != nil {
		return nil, err
	}
	s := &subject{Checkpoint: ck, Progress: told}
	if s.Rank, err = bases.Rank(ck, f.Rank); err != nil {
		return nil, err
	}
	r := &Audited{Checkpoint: f.Checkpoint, BaseSHA256: ck.BaseSHA256, Job: ck.Job, Task: ck.Method.Task.String(), Rank: s.Rank,
		Privacy: ck.Privacy, Start: f.Start, Version: version, Commit: commit}
	if f.Start != "" {
		from, err := bases.Released(f.Start)
		if err != nil {
			return nil, fmt.Errorf("--start: %w", err)
		}
		if from.BaseSHA256 != ck.BaseSHA256 {
			return nil, fmt.Errorf("--start: it is of the base %s, the released adapter of %s", from.BaseSHA256, ck.BaseSHA256)
		}
		s.Start = from.Adapter
	}
	p, err := f.people(ck, r)
	if err != nil {
		return nil, err
	}
	if s.Engine, err = open(); err != nil {
		return nil, err
	}
	r.Engine, r.By, r.Examples = s.Engine.Name, p.By, len(p.Examples)
	r.Members, r.Others = p.Count()
	if r.AdapterSHA256, err = sha256Of(filepath.Join(f.Checkpoint, model.AdapterFile)); err != nil {
		return nil, err
	}
	return &Audit{r, s, p}, s.Open()
}

func (f *Files) people(ck *model.Checkpoint, r *Audited) (*People, error) {
	load := func(what, path string) (*dataset.Set, error) {
		columns := f.Columns
		if ck.Method.Task.PredictsTokens() {
			columns.Unlabelled = true
		}
		set, err := columns.Load(path)
		if err != nil {
			return nil, err
		}
		if set, err = set.Relabel(ck.Labels); err != nil {
			return nil, err
		}
		sum, err := fleetdata.Hash(path, columns, set)
		r.Files = append(r.Files, AuditedFile{what, path, sum})
		return set, err
	}
	if f.Data == "" {
		members, err := load("members", f.Members)
		if err != nil {
			return nil, err
		}
		others, err := load("others", f.Others)
		if err != nil {
			return nil, err
		}
		return apart(members, others, f.By)
	}
	all, err := load("examples", f.Data)
	if err != nil {
		return nil, err
	}
	in, err := readNames(f.In)
	if err != nil {
		return nil, err
	}
	sum, err := sha256Of(f.In)
	if err != nil {
		return nil, err
	}
	r.Files = append(r.Files, AuditedFile{"members' names", f.In, sum})
	return Among(all, in, f.By)
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
func (r *Audited) facts(more ...dossier.Fact) []dossier.Fact {
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

// Limits of every attack.
var auditLimits = []string{
	"An attack that fails proves nothing: others may be stronger. What a model can give away at most is the epsilon it was trained with, if any.",
	"Members and others must be drawn alike, from one list by chance. Where they differ in anything else (when they came, what they bill), an attack may tell that instead; the base's figures show some of it, not all.",
}

func percent(x float64) string { return fmt.Sprintf("%.1f", 100*x) }

func between(low, high float64) string { return fmt.Sprintf("%.1f to %.1f", 100*low, 100*high) }
