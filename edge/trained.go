package edge

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm"
)

// ErrNoModel is a job that ended without offering its model to this device.
var ErrNoModel = errors.New("edge: no model is offered")

// archiveExtra is what an archive may have beside the adapter's values, bytes: names,
// configuration, README.
const archiveExtra = 1 << 20

// Trained is the finished model of a job, for a device that took part: the released adapter at one
// rank, with the program that runs it. It no longer needs the coordinator. Its methods may be
// called from any goroutine, one at a time.
type Trained struct {
	Version uint64   // rounds in it
	Rank    int      // 0: the head alone
	Labels  []string // what Predict chooses from; none where it finds answers or writes
	Archive []byte   // a zip of the adapter for other software

	job      wire.Job
	packed   []byte // the adapter as it was offered
	layout   *model.Layout
	sequence int
	task     task.Task
	values   []float32 // layout.Size(Rank)
	work     float64   // most units a pass may take
	program  []byte

	mu     sync.Mutex
	base   *model.Base // by mu; nil once its weights are in the program
	fresh  []float32   // by mu; values that have learnt nothing, nil before they are asked for
	loaded *loaded     // by mu; nil before the first example
}

// take fetches the model that the coordinator offers at the end, each part by its
// hash.
func (c *client) take(ctx context.Context, m *wire.Finished) (*Trained, error) {
	if c.prep != nil { // a device that came for the end alone
		select {
		case err := <-c.prep:
			c.prep, c.prepared = nil, err == nil
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	j := c.job
	if !c.prepared || !m.Model.Offered() {
		return nil, ErrNoModel
	}
	t := &Trained{Version: m.Version, Rank: int(m.Model.Rank), Labels: j.Labels, job: j.Job, layout: j.layout, sequence: int(j.Sequence),
		work: c.cfg.Policy.Work}
	if err := t.fits(); err != nil {
		return nil, err
	}
	size := j.layout.Size(t.Rank)
	for _, b := range []wire.Blob{m.Model.Adapter, m.Model.Archive} {
		if most := 4*uint64(size) + archiveExtra; b.Size > most {
			return nil, fmt.Errorf("%w: a model of %d values in %d bytes, limit %d", ErrJob, size, b.Size, most)
		}
	}
	var err error
	if t.packed, err = c.blobs.get(ctx, m.Model.Adapter, false, nil); err != nil {
		return nil, err
	}
	forms := m.Model.Programs
	chosen := forms[0]
	for _, g := range forms {
		if g.Host == host {
			chosen = g
		}
	}
	if t.program, err = c.blobs.get(ctx, chosen.Blob, false, nil); err != nil {
		return nil, err
	}
	if t.Archive, err = c.blobs.get(ctx, m.Model.Archive, false, nil); err != nil {
		return nil, err
	}
	if t.base, err = c.openBase(ctx, j); err != nil {
		return nil, err
	}
	return t, t.open()
}

// load makes an instance of the program with the base's weights in it.
func (t *Trained) load(ctx context.Context) (_ *loaded, err error) {
	program, err := wasm.Load(ctx, t.program, wasm.Config{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	b := &loaded{program: program, proof: newProof(program, 1, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if err := checkWork(b.bound(1), t.work); err != nil {
		return nil, err
	}
	want := map[string]wasm.Tensor{}
	for _, c := range t.columns() {
		kind := wasm.Int32
		if c.Type == task.F32 {
			kind = wasm.Float32
		}
		want[c.Name] = wasm.Tensor{DType: kind, Shape: append([]int{1}, c.Shape...)}
	}
	for _, s := range t.layout.Spans(t.Rank) {
		if s.Len > 0 {
			want[s.Name] = wasm.Tensor{DType: wasm.Float32, Shape: s.Shape}
		}
	}
	m := program.Manifest()
	if err := checkInputs(m, want); err != nil {
		return nil, err
	}
	if len(m.Inputs) != len(want) || len(m.State) != 0 {
		return nil, fmt.Errorf("%w: it has %d inputs and %d states, %d and none expected", ErrMisfit, len(m.Inputs), len(m.State), len(want))
	}
	if err := checkFrozen(m, t.base); err != nil {
		return nil, err
	}
	return b, b.fill(ctx, t.base)
}

// Close frees the model's memory.
func (t *Trained) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.loaded
	t.loaded, t.base = nil, nil
	if b == nil {
		return nil
	}
	return b.close()
}
