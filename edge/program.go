package edge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/quant/nf4"
	"github.com/starling-fl/starling/wasm"
)

// ProgramTrainer runs the coordinator's compiled training step in package
// wasm. It keeps a few programs with their frozen weights in memory between
// rounds.
type ProgramTrainer struct {
	// Cores is the most goroutines, in a browser workers, that compute one training's
	// matrix products; less than 1 counts as 1. It changes speed and nothing else, and
	// must not be set once training has begun.
	Cores int
	// Kernel names the kernel of products, one of wasm.Kernels; empty is the first. It changes speed and nothing
	// else.
	Kernel string

	slots chan struct{} // one token for each training that may run

	mu     sync.Mutex
	idle   []*loaded                   // by mu; most recently used last, at most cap(slots)
	proofs map[[sha256.Size]byte]proof // by mu: of programs that were loaded
}

// loaded is an instance with a base's frozen weights in it. It belongs to one
// training at a time.
type loaded struct {
	sum  [sha256.Size]byte // of the program
	base [sha256.Size]byte // of the base's blob
	proof
	program  *wasm.Program
	instance *wasm.Instance
	features []float32 // room for those of a step's rows; nil: the program takes none
}

// NewProgramTrainer lets at most parallel trainings run at once; the others
// wait. Each needs a core, or Cores of them, and the program's memory.
func NewProgramTrainer(parallel int) *ProgramTrainer {
	return &ProgramTrainer{slots: make(chan struct{}, max(1, parallel))}
}

// Train implements Trainer.
func (p *ProgramTrainer) Train(ctx context.Context, t Task) ([]float32, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(t.Program)
	if err := p.known(sum, t); err != nil {
		return nil, err
	}
	b, err := p.take(ctx, t, sum)
	if err != nil {
		return nil, err
	}
	var delta []float32
	if err = b.allowed(t); err == nil {
		delta, err = b.train(ctx, t)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return delta, p.put(b)
}

// Close frees the programs. No training may be running.
func (p *ProgramTrainer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, b := range p.idle {
		errs = append(errs, b.close())
	}
	p.idle = nil
	return errors.Join(errs...)
}

// take returns an instance for the task: one that is idle, or a new one.
func (p *ProgramTrainer) take(ctx context.Context, t Task, sum [sha256.Size]byte) (*loaded, error) {
	p.mu.Lock()
	for i, b := range p.idle {
		if b.sum == sum && b.base == t.BaseSHA256 && b.batch == t.Batch {
			p.idle = slices.Delete(p.idle, i, i+1)
			p.mu.Unlock()
			return b, nil
		}
	}
	// Room for what is about to be made: an idle one of another rank goes.
	var old *loaded
	if len(p.idle) >= cap(p.slots) {
		old = p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	p.mu.Unlock()
	if old != nil {
		if err := old.close(); err != nil {
			return nil, err
		}
	}
	return p.load(ctx, t, sum)
}

func (p *ProgramTrainer) config() wasm.Config { return wasm.Config{Cores: p.Cores, Kernel: p.Kernel} }

func (p *ProgramTrainer) put(b *loaded) error {
	p.mu.Lock()
	p.idle = append(p.idle, b)
	var old *loaded
	if len(p.idle) > cap(p.slots) {
		old = p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	p.mu.Unlock()
	if old != nil {
		return old.close()
	}
	return nil
}

// load loads the program, checks it against its owner's limits and the task, and writes
// the frozen weights.
func (p *ProgramTrainer) load(ctx context.Context, t Task, sum [sha256.Size]byte) (*loaded, error) {
	cfg := p.config()
	cfg.Limits.MemoryPages = mostPages // the owner's limit is held against it before there is an instance
	program, err := wasm.Load(ctx, t.Program, cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	rows := microBatch(program.Manifest(), t)
	b := &loaded{sum: sum, base: t.BaseSHA256, program: program, proof: newProof(program, t.Batch, rows)}
	p.remember(sum, b.proof)
	if err := b.allowed(t); err != nil {
		return nil, errors.Join(err, b.close())
	}
	base, err := t.Base(ctx)
	if err == nil {
		err = checkProgram(program.Manifest(), t, rows, base)
	}
	if err == nil {
		err = b.fill(ctx, base)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	if b.large() {
		debug.FreeOSMemory() // the base
	}
	return b, nil
}

// fill makes the instance and writes the base's tensors into it.
func (b *loaded) fill(ctx context.Context, base *model.Base) (err error) {
	if b.instance, err = b.program.NewInstance(ctx); err != nil {
		return err
	}
	for _, s := range b.program.Manifest().State {
		if s.Name == trainer.StateFeatures {
			b.features = make([]float32, elements(s.Shape))
		}
	}
	// The largest first: what one tensor takes beside the program's memory is
	// then least while that memory fills up.
	frozen := slices.Clone(b.program.Manifest().Frozen)
	slices.SortStableFunc(frozen, func(x, y wasm.Tensor) int { return cmp.Compare(elements(y.Shape), elements(x.Shape)) })
	for i := range frozen {
		if elements(frozen[i].Shape) >= largeTensor {
			debug.FreeOSMemory() // what the tensor before this one, or the download, has left
		}
		if err := b.freeze(&frozen[i], base); err != nil {
			return err
		}
	}
	return nil
}

// large reports whether the base is worth giving its memory back.
func (b *loaded) large() bool {
	return slices.ContainsFunc(b.program.Manifest().Frozen, func(f wasm.Tensor) bool { return elements(f.Shape) >= largeTensor })
}

// largeTensor is the number of values from which a decoded tensor's memory is
// given back to the system at once: a small device has little to spare.
const largeTensor = 1 << 20

// freeze writes one of the base's tensors: as the codes it is stored in where
// the program wants those, else decoded, one tensor at a time.
func (b *loaded) freeze(f *wasm.Tensor, base *model.Base) error {
	if f.NF4 != nil {
		codes, scales, stored, err := base.StoredNF4(f.Name)
		if err != nil {
			return err
		}
		if stored && len(scales) == nf4.Blocks(elements(f.Shape), f.NF4.Block) {
			return b.instance.WriteFrozenNF4(f.Name, codes, scales)
		}
	}
	values, err := base.Tensor(f.Name)
	if err != nil {
		return err
	}
	return b.instance.WriteFrozen(f.Name, values)
}

func (b *loaded) close() error {
	var err error
	if b.instance != nil {
		err = b.instance.Close()
	}
	return errors.Join(err, b.program.Close())
}

// write hands a batch to the program.
func (b *loaded) write(batch Batch) error {
	for _, c := range batch {
		var err error
		if c.Type == task.F32 {
			err = b.instance.WriteFloat32(c.Name, c.F32)
		} else {
			err = b.instance.WriteInt32(c.Name, c.I32)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// piece takes a step of as many rows as the program takes at once. What its convolutions made
// of them before it is given, where it takes that and all of it is kept.
func (b *loaded) piece(ctx context.Context, t Task, batch Batch) error {
	if err := b.write(batch); err != nil {
		return err
	}
	if b.features == nil {
		return b.instance.Step(ctx)
	}
	if t.Features == nil { // an instance that is used again has what its last step was told
		return errors.Join(b.instance.WriteFloat32(trainer.InputKept, []float32{0}), b.instance.Step(ctx))
	}
	by, names, kept := trainer.Maker{Base: b.base, Fused: b.program.Manifest().Fused}, trainer.Recordings(batch), float32(0)
	if t.Features.Take(by, names, b.features) {
		kept = 1
		if err := b.instance.WriteFloat32(trainer.StateFeatures, b.features); err != nil {
			return err
		}
	}
	if err := errors.Join(b.instance.WriteFloat32(trainer.InputKept, []float32{kept}), b.instance.Step(ctx)); err != nil || kept == 1 {
		return err
	}
	if err := b.instance.ReadFloat32(trainer.StateFeatures, b.features); err != nil {
		return err
	}
	t.Features.Keep(by, names, b.features)
	return nil
}

// step takes one step, in as many pieces as the program takes the batch in: it adds
// their gradients up and updates with the last.
func (b *loaded) step(ctx context.Context, t Task, batch Batch) error {
	if b.rows == t.Batch {
		return b.piece(ctx, t, batch)
	}
	for from := 0; from < t.Batch; from += b.rows {
		last := float32(0)
		if from+b.rows == t.Batch {
			last = 1
		}
		if err := b.instance.WriteFloat32(trainer.InputLast, []float32{last}); err != nil {
			return err
		}
		if err := b.piece(ctx, t, batch.Cut(from, from+b.rows)); err != nil {
			return err
		}
	}
	return nil
}

// scores are what the last step found, where somebody wants to know.
func (b *loaded) scores(t Task) (loss, right float32, err error) {
	if t.Scores == nil {
		return 0, 0, nil
	}
	one := []float32{0}
	if err := b.instance.ReadFloat32(trainer.OutputLoss, one); err != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	loss, right = one[0], float32(math.NaN())
	if slices.ContainsFunc(b.program.Manifest().Outputs, func(o wasm.Tensor) bool { return o.Name == trainer.OutputRight }) {
		if err := b.instance.ReadFloat32(trainer.OutputRight, one); err != nil {
			return 0, 0, fmt.Errorf("%w: %w", ErrMisfit, err)
		}
		right = one[0]
	}
	return loss, right, nil
}

// train writes the start, runs the steps and reads the difference.
func (b *loaded) train(ctx context.Context, t Task) ([]float32, error) {
	in, m := b.instance, b.program.Manifest()
	spans := make(map[string]model.Span)
	for _, s := range t.Layout.Spans(t.Rank) {
		spans[s.Name] = s
	}
	for _, s := range m.State {
		values := make([]float32, elements(s.Shape)) // an optimizer starts from zero in every round
		if span, ok := spans[s.Name]; ok {
			values = t.Start[span.Offset : span.Offset+span.Len]
		}
		if err := in.WriteFloat32(s.Name, values); err != nil {
			return nil, err
		}
	}
	hasStep := slices.ContainsFunc(m.Inputs, func(x wasm.Tensor) bool { return x.Name == trainer.InputStep })
	done := 0
	for batch, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		done++
		err = in.WriteFloat32(trainer.InputRate, []float32{float32(t.LearningRate)})
		if hasStep {
			err = errors.Join(err, in.WriteFloat32(trainer.InputStep, []float32{float32(done)}))
		}
		if err != nil {
			return nil, err
		}
		if err := b.step(ctx, t, batch); err != nil {
			return nil, fmt.Errorf("step %d: %w", done, err)
		}
		loss, right, err := b.scores(t)
		if err != nil {
			return nil, err
		}
		t.Did(done, loss, right)
	}
	delta := make([]float32, len(t.Start))
	for _, s := range spans {
		if s.Len == 0 {
			continue
		}
		if err := in.ReadFloat32(s.Name, delta[s.Offset:s.Offset+s.Len]); err != nil {
			return nil, err
		}
	}
	for i := range delta {
		delta[i] -= t.Start[i]
		if v := float64(delta[i]); math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%w: value %d of the update is %v", ErrDiverged, i, v)
		}
	}
	return delta, nil
}
