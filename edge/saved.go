package edge

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// A SavedModel is a trained model as bytes, to be stored and opened again without its coordinator.
type SavedModel struct {
	Version uint64 // rounds in it
	Rank    int
	Job     []byte // as it was announced
	Adapter []byte // as it was offered
	Program []byte
	Archive []byte
	Base    []byte // the base's blob
}

// mostSaved bounds a base that Save copies: what keeps a model holds it in memory.
const mostSaved = 64 << 20

// Save returns the model as bytes; ok is false if its base is larger than 64 MiB. Call it before
// the first Predict, which frees the parts.
func (t *Trained) Save() (k SavedModel, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.base == nil || t.job.Base.Size > mostSaved {
		return k, false, nil
	}
	k = SavedModel{Version: t.Version, Rank: t.Rank, Adapter: t.packed, Program: t.program, Archive: t.Archive}
	if k.Job, err = t.job.AppendBinary(nil); err != nil {
		return k, false, err
	}
	if k.Base, err = t.base.Blob(); err != nil {
		return k, false, err
	}
	// What was packed anew need not be what was hashed.
	return k, sha256.Sum256(k.Base) == t.job.Base.SHA256, nil
}

// Open returns the model, after the same checks as when it was fetched.
func (k SavedModel) Open() (*Trained, error) {
	j, err := wire.ParseJob(k.Job)
	if err != nil {
		return nil, &ProtocolError{err}
	}
	if sha256.Sum256(k.Base) != j.Base.SHA256 {
		return nil, fmt.Errorf("%w: the saved base is not the job's", ErrBase)
	}
	base, err := openBlob(j.Base, bytes.NewReader(k.Base))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBase, err)
	}
	layout, err := layoutOf(j, base)
	if err != nil {
		return nil, err
	}
	t := &Trained{Version: k.Version, Rank: k.Rank, Labels: j.Labels, Archive: k.Archive, job: *j, packed: k.Adapter,
		layout: layout, sequence: int(j.Sequence), work: DefaultPolicy().Work, program: k.Program, base: base}
	return t, t.open()
}

// fits holds the model to the job's layout.
func (t *Trained) fits() error {
	if err := t.layout.CheckRank(t.Rank); err != nil {
		return fmt.Errorf("%w: %w", ErrJob, err)
	}
	if !t.layout.Method.Task.Tried() {
		return ErrNoModel
	}
	return nil
}

// open reads the adapter and makes the task.
func (t *Trained) open() (err error) {
	if err := t.fits(); err != nil {
		return err
	}
	if t.values, err = quant.UnpackUpdate(t.packed, nil, t.layout.Size(t.Rank)); err != nil {
		return err
	}
	if t.task, err = task.New(t.base, t.layout, t.sequence); err != nil {
		return fmt.Errorf("%w: %w", ErrBase, err)
	}
	return nil
}

// layoutOf is what a job trains over its base.
func layoutOf(j *wire.Job, base *model.Base) (*model.Layout, error) {
	method, err := contract.Method(j)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJob, err)
	}
	layout, err := model.NewLayout(base.Config, method, len(j.Labels))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBase, err)
	}
	return layout, nil
}
