package edge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/tokenizer"
	"github.com/starling-fl/starling/wasm"
)

// ErrNoModel is a job that ends without offering its model to this device.
var ErrNoModel = errors.New("edge: no model is offered")

// outputLogits is what a forward pass yields: float32 [1, classes].
const outputLogits = "logits"

// archiveExtra is what an archive may have beside the adapter's values, bytes: names,
// configuration, README.
const archiveExtra = 1 << 20

// Trained is what a job has come to, for a device that took part: the released
// adapter at a rank, with the program that runs it. It needs the coordinator no
// more. Its methods may be called from any goroutine, one at a time each.
type Trained struct {
	Version uint64   // rounds in it
	Rank    int      // 0: the head alone
	Labels  []string // in the order of the probabilities
	Archive []byte   // a zip of the adapter for other software

	job      wire.Job
	packed   []byte // the adapter as it was offered
	layout   *model.Layout
	sequence int
	tok      tokenizer.Tokenizer
	values   []float32 // layout.Size(Rank)
	work     float64   // most units a text may take
	program  []byte

	mu     sync.Mutex
	base   *model.Base // by mu; nil once its weights are in the program
	loaded *loaded     // by mu; nil before the first text
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

// Predict returns the probability of each label for a text: a softmax, not
// calibrated. The first call prepares the program, which takes a moment.
func (t *Trained) Predict(ctx context.Context, text string) ([]float64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loaded == nil {
		if t.base == nil {
			return nil, ErrNoModel // closed
		}
		b, err := t.load(ctx)
		if err != nil {
			return nil, err
		}
		t.loaded, t.base, t.program = b, nil, nil
	}
	in := t.loaded.instance
	err := in.WriteInt32(task.Tokens, t.tok.EncodeFixed(text, t.sequence))
	for _, s := range t.layout.Spans(t.Rank) {
		if s.Len > 0 && err == nil {
			err = in.WriteFloat32(s.Name, t.values[s.Offset:s.Offset+s.Len])
		}
	}
	if err == nil {
		err = in.Step(ctx)
	}
	logits := make([]float32, len(t.Labels))
	if err == nil {
		err = in.ReadFloat32(outputLogits, logits)
	}
	if err != nil {
		return nil, err
	}
	return softmax(logits)
}

// load makes an instance of the program with the base's weights in it.
func (t *Trained) load(ctx context.Context) (_ *loaded, err error) {
	program, err := wasm.Load(ctx, t.program, wasm.Config{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	b := &loaded{program: program}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if err := checkWork(b.bound(1), t.work); err != nil {
		return nil, err
	}
	want := map[string]wasm.Tensor{task.Tokens: {DType: wasm.Int32, Shape: []int{1, t.sequence}}}
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

// Close frees what the model takes.
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

// softmax refuses scores that are not finite.
func softmax(logits []float32) ([]float64, error) {
	most, sum := math.Inf(-1), 0.0
	for _, v := range logits {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("%w: a score is %v", ErrDiverged, v)
		}
		most = max(most, float64(v))
	}
	out := make([]float64, len(logits))
	for i, v := range logits {
		out[i] = math.Exp(float64(v) - most)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out, nil
}
