// Package bases finds the models that jobs and commands name: embedded ones, folders, and models in the local Hugging Face
// cache.
package bases

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/model/hub"
	"github.com/starling-fl/starling/model/known"
)

// Load is the folder, or the model in the local Hugging Face cache, that a job
// names, an embedded one of that name, or the embedded default.
func Load(path string) (*model.Base, error) {
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

// ForJob is the base that a job names, or the embedded one for its task, in the
// form that the job asks for.
func ForJob(j job.Job) (*model.Base, error) {
	load := Load
	if j.Method().Task == model.TaskAnswer {
		load = ForDocuments
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

// Published says where devices can get a job's base themselves: its name and commit on a hub, or
// the name of an embedded base, which has no commit. Both are empty for an unpublished folder.
func Published(j job.Job) (name, revision string, err error) {
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

// ForDocuments is Load with the embedded base for documents as the default.
func ForDocuments(path string) (*model.Base, error) {
	if path == "" {
		return base.Documents()
	}
	return Load(path)
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
		b, err = Load(name)
		return b, "-", err
	}
	dir, err := hub.Find(name)
	if err != nil {
		return nil, "", named.Wrap(err)
	}
	b, err = model.LoadBaseDir(dir)
	return b, hub.Revision(dir), named.Wrap(err)
}

// Forms returns a base as it is stored and, where that differs, as 4-bit codes.
func Forms(name string) (forms []known.Base, err error) {
	b, revision, err := OpenNamed(name)
	if err != nil {
		return nil, err
	}
	stored := known.Base{Name: name, Revision: revision, Format: known.FormatStored, Tokenizer: sha256.Sum256(b.Tokenizer)}
	if stored.SHA256, err = b.SHA256(); err != nil {
		return nil, err
	}
	forms = append(forms, stored)
	if b.Packed() {
		return forms, nil
	}
	packed, err := b.Pack()
	if err != nil {
		return nil, err
	}
	coded := stored
	coded.Format = known.FormatNF4
	coded.SHA256, err = packed.SHA256()
	return append(forms, coded), err
}

// IsCheckpoint reports whether a folder holds a released adapter.
func IsCheckpoint(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, model.CheckpointFile))
	return !errors.Is(err, fs.ErrNotExist)
}
