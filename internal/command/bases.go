package command

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/hub"
	"github.com/starling-fl/starling/internal/named"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/model/known"
)

// LoadBase is the folder, or the model in the local Hugging Face cache, that a job
// names, an embedded one of that name, or the embedded default.
func LoadBase(path string) (*model.Base, error) {
	switch path {
	case "", embeddedDefault:
		return base.Default()
	case embeddedDocuments:
		return base.Documents()
	}
	dir, err := hub.Find(path)
	if err != nil {
		return nil, named.Wrap(err)
	}
	b, err := model.LoadBaseDir(dir)
	return b, named.Wrap(err)
}

// LoadJobBase is the base that a job names, or the embedded one for its task, in the
// form that the job asks for.
func LoadJobBase(j job.Job) (*model.Base, error) {
	load := LoadBase
	if j.Method().Task == model.TaskAnswer {
		load = LoadDocumentBase
	}
	dir, err := jobBaseDir(j)
	if err != nil {
		return nil, err
	}
	b, err := load(dir)
	if err != nil {
		return nil, err
	}
	return j.OpenBase(b)
}

// jobBaseDir is the folder of the base that a job names, or the name of an embedded one;
// empty if it names none.
func jobBaseDir(j job.Job) (string, error) {
	if j.Base == "" && j.BaseRevision == "" || embedded(j.Base) {
		return j.Base, nil
	}
	dir, err := hub.FindAt(j.Base, j.BaseRevision)
	return dir, named.Wrap(err)
}

// PublishedBase is where devices can have a job's base from themselves: its name and commit
// on a hub, or the name of an embedded one, which has no commit. Both are empty of a folder
// that is nobody else's.
func PublishedBase(j job.Job) (name, revision string, err error) {
	dir, err := jobBaseDir(j)
	switch {
	case err != nil:
		return "", "", err
	case embedded(dir):
		return dir, "", nil
	case dir != "":
		name, revision = hub.Published(dir)
		return name, revision, nil
	case j.Method().Task == model.TaskAnswer:
		return embeddedDocuments, "", nil
	}
	return embeddedDefault, "", nil
}

// LoadDocumentBase is LoadBase with the embedded base for documents as the default.
func LoadDocumentBase(path string) (*model.Base, error) {
	if path == "" {
		return base.Documents()
	}
	return LoadBase(path)
}

// Names of the embedded bases.
const (
	embeddedDefault   = "starling/default"
	embeddedDocuments = "starling/documents"
)

func embedded(name string) bool { return name == embeddedDefault || name == embeddedDocuments }

// OpenNamed is the base of a name: an embedded one, one of the cache or a folder.
func OpenNamed(name string) (b *model.Base, revision string, err error) {
	if embedded(name) {
		b, err = LoadBase(name)
		return b, "-", err
	}
	dir, err := hub.Find(name)
	if err != nil {
		return nil, "", named.Wrap(err)
	}
	b, err = model.LoadBaseDir(dir)
	return b, hub.Revision(dir), named.Wrap(err)
}

// KnownFlags name a list of published bases beside the program's own.
type KnownFlags struct {
	file string
	keys []string
}

// Add adds the flags.
func (f *KnownFlags) Add(fl *pflag.FlagSet) {
	fl.StringVar(&f.file, "base-list", "", "signed list of more published bases (see 'starling base sign')")
	fl.StringSliceVar(&f.keys, "base-key", nil, "key that must have signed it, name+hash+key")
}

// List is the list that is named, nil if none is.
func (f *KnownFlags) List() (known.List, error) {
	if f.file == "" {
		if len(f.keys) > 0 {
			return nil, Usagef("--base-key is of a list: --base-list names none")
		}
		return nil, nil
	}
	if len(f.keys) == 0 {
		return nil, Usagef("--base-list %s: --base-key says whose signature it needs", f.file)
	}
	file, err := named.Once(f.file)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, known.MostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	l, err := known.Open(b, f.keys...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	return l, nil
}
