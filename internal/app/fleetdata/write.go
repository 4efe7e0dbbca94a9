package fleetdata

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/calls"
	"github.com/starling-fl/starling/data/dataset/files"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// Written describes the generated documents that were written.
type Written struct {
	Files     []string `json:"files"`
	Examples  int      `json:"examples"`
	Labels    []string `json:"labels"`
	Generator string   `json:"generator"`
	// Of questions: how often each key is asked for, and how many providers the training split knows and does not.
	Asked     map[string]int `json:"asked,omitempty"`
	Providers *met           `json:"providers,omitempty"`
	Members   string         `json:"members,omitempty"` // the file that names the known providers

	out string
}

type met struct {
	Seen   int `json:"seen"`
	Unseen int `json:"unseen"`
}

// WriteInvoices writes the invoices that cfg makes into the folder out, a file for each client.
func WriteInvoices(cfg dataset.InvoiceConfig, out string) (Written, error) {
	set, err := dataset.Invoices(cfg)
	if err != nil {
		return Written{}, usage.Wrap(err)
	}
	if err := onlyThese(set, out, cfg.Split); err != nil {
		return Written{}, err
	}
	return Written{Generator: dataset.GeneratorVersion}.write(set, out)
}

// WriteCommands writes the conversations of the commands that cfg makes into the folder out: a file for each speaker,
// and test.jsonl with a number of commands by speakers of none of them.
func WriteCommands(cfg calls.Config, test int, out string) (Written, error) {
	talks := func(cfg calls.Config) (*dataset.Set, error) {
		set, err := calls.Generate(cfg)
		if err != nil {
			return nil, usage.Wrap(err)
		}
		for i, e := range set.Examples {
			if set.Examples[i], err = calls.Talk(e); err != nil {
				return nil, err
			}
		}
		return set, nil
	}
	set, err := talks(cfg)
	if err != nil {
		return Written{}, err
	}
	if err := onlyThese(set, out, cfg.Split); err != nil {
		return Written{}, err
	}
	r, err := Written{Generator: calls.Version}.write(set, out)
	if err != nil || test == 0 {
		return r, err
	}
	cfg.Split, cfg.Clients, cfg.PerClient = "test", test, 1
	if set, err = talks(cfg); err != nil {
		return Written{}, err
	}
	path := filepath.Join(out, "test.jsonl")
	r.Files, r.Examples = append(r.Files, path), r.Examples+test
	return r, files.WriteJSONLines(path, set)
}

// WriteQuestions writes the documents that cfg makes, with their questions, into the folder out: a file for each client
// and members.json, which names the providers that are also in the training split of train's size, if there are any.
// WriteQuestions warns on told of a red split without members.
func WriteQuestions(told io.Writer, cfg, train dataset.DocumentConfig, out string) (Written, error) {
	set, err := dataset.Documents(cfg)
	if err != nil {
		return Written{}, usage.Wrap(err)
	}
	if err := onlyThese(set, out, cfg.Split); err != nil {
		return Written{}, err
	}
	if cfg.Pages {
		if err := files.WritePages(set, filepath.Join(out, pagesFolder)); err != nil {
			return Written{}, err
		}
	}
	r := Written{Generator: dataset.DocumentsVersion, Asked: map[string]int{}}
	of := map[string]bool{}
	for _, e := range set.Examples {
		r.Asked[e.Key]++
		of[e.Provider] = true
	}
	training := set
	if cfg.Split != dataset.TrainSplit {
		if training, err = trainingOf(cfg, train); err != nil {
			return Written{}, err
		}
	}
	seen := dataset.SeenProviders(set, training)
	r.Providers = &met{len(seen), len(of) - len(seen)}
	if err := named.MakeDir(out); err != nil {
		return Written{}, err
	}
	members := filepath.Join(out, "members.json")
	if err := os.Remove(members); err != nil && !errors.Is(err, fs.ErrNotExist) { // another run's name others
		return Written{}, err
	}
	if len(seen) > 0 && cfg.Split != dataset.TrainSplit {
		names, err := json.Marshal(seen)
		if err != nil {
			return Written{}, err
		}
		r.Members = members
		if err := os.WriteFile(r.Members, append(names, '\n'), 0o644); err != nil { // as the files that name all of them
			return Written{}, err
		}
	} else if cfg.Split == dataset.RedSplit {
		fmt.Fprintf(told, "note: no member: a training split of %d clients with %d documents each has none of the %d providers; "+
			"make more documents here or there (--per-client, --train-clients, --train-per-client)\n", cmp.Or(train.Clients, cfg.Clients), cmp.Or(train.PerClient, cfg.PerClient), len(of))
	}
	return r.write(set, out)
}

// trainingOf returns the training split that shares providers with cfg's set. train gives its numbers of clients and
// documents; 0 means as many as the set has.
func trainingOf(cfg, train dataset.DocumentConfig) (*dataset.Set, error) {
	train.Seed, train.Split, train.Providers, train.Identifiers, train.Asked = cfg.Seed, dataset.TrainSplit, cfg.Providers, cfg.Identifiers, cfg.Asked
	train.Clients, train.PerClient, train.Sheets = cmp.Or(train.Clients, cfg.Clients), cmp.Or(train.PerClient, cfg.PerClient), cfg.Sheets
	set, err := dataset.Documents(train)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	return set, nil
}

// pagesFolder holds documents' pictures, in the folder of the files that name them.
const pagesFolder = "pages"

func clientPath(out, user string) string { return filepath.Join(out, user+".jsonl") }

// onlyThese refuses a folder with an earlier run's files of the same split that this run would not overwrite: a reader
// would take them for this run's.
func onlyThese(set *dataset.Set, out, split string) error {
	ours, drawn := map[string]bool{}, map[*dataset.Image]bool{nil: true}
	for i := range set.Examples {
		e := &set.Examples[i]
		ours[clientPath(out, e.User)] = true
		if !drawn[e.Image] {
			drawn[e.Image], ours[filepath.Join(out, pagesFolder, files.PageName(set, i))] = true, true
		}
	}
	for _, pattern := range []string{split + "-*.jsonl", pagesFolder + "/" + split + "-*.png"} {
		found, err := fs.Glob(os.DirFS(out), pattern)
		if err != nil {
			return fmt.Errorf("%w", err)
		}
		for _, path := range found {
			if !ours[filepath.Join(out, path)] {
				return named.Errorf("--out %s holds %s of an earlier run: remove that run's files, or choose another folder", out, path)
			}
		}
	}
	return nil
}

func (r Written) write(set *dataset.Set, out string) (Written, error) {
	if err := named.MakeDir(out); err != nil {
		return Written{}, err
	}
	r.Examples, r.Labels, r.out = len(set.Examples), set.Labels, out
	for from := 0; from < len(set.Examples); {
		to := from + 1
		for to < len(set.Examples) && set.Examples[to].User == set.Examples[from].User {
			to++
		}
		part := &dataset.Set{Labels: set.Labels, Examples: set.Examples[from:to]}
		path := clientPath(out, part.Examples[0].User)
		if err := files.WriteJSONLines(path, part); err != nil {
			return Written{}, err
		}
		r.Files, from = append(r.Files, path), to
	}
	return r, nil
}

// Print writes a summary as text.
func (r Written) Print(w io.Writer) error {
	_, err := io.WriteString(w, r.text())
	return err
}

func (r Written) text() string {
	if r.Asked == nil {
		return fmt.Sprintf("%d examples in %d files in %s (%s)\n", r.Examples, len(r.Files), r.out, r.Generator)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d questions in %d files in %s (%s)\n%d providers of the training split, %d others\n",
		r.Examples, len(r.Files), r.out, r.Generator, r.Providers.Seen, r.Providers.Unseen)
	if r.Members != "" {
		fmt.Fprintf(&b, "the former are named in %s\n", r.Members)
	}
	keys := slices.SortedFunc(maps.Keys(r.Asked), func(a, b string) int { return cmp.Or(r.Asked[b]-r.Asked[a], cmp.Compare(a, b)) })
	for _, key := range keys {
		fmt.Fprintf(&b, "  %-16s %6d %s\n", key, r.Asked[key], strings.Repeat("#", 40*r.Asked[key]/r.Asked[keys[0]]))
	}
	return b.String()
}
