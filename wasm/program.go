package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// Config says how programs are held and run. The zero value is the default.
type Config struct {
	Limits Limits
	// Interpreter runs the program in wazero's interpreter: the same bits, many
	// times slower. It has no effect under GOOS=js.
	Interpreter bool
	// Kernel names what computes declared products: one of Kernels, or nothing for the first of
	// them. The results are the same. It has no effect under GOOS=js or in the interpreter, which run the program's
	// own code, but for the interpreter's fused programs, whose products only kernels compute.
	Kernel string
	// Cores is the most goroutines that compute a declared product at once; less
	// than 1 counts as 1. It has no effect where Kernel has none. Under GOOS=js it is the most
	// workers, where the page offers more than its own (web/edge/src/threads.js).
	Cores int
}

// Twin names a program's own code, which runs everywhere, among Kernels.
const Twin = "twin"

// Program is a verified and compiled program. Any number of goroutines may share
// it and make instances of it.
type Program struct {
	manifest *Manifest
	report   *Report
	sum      [sha256.Size]byte
	tensors  map[string]tensorRef
	calls    []Call // of a step
	host     hostModule
	products *products // nil: the program's own code computes them

	mu     sync.Mutex
	closed bool              // guarded by mu
	open   map[*Instance]int // guarded by mu; the instances to close with the program
}

// tensorRef finds a tensor by name.
type tensorRef struct {
	*Tensor
	role   string
	frozen int // index among the frozen tensors
}

// hostModule is a compiled module in an engine: wazero, or the browser's.
type hostModule interface {
	instantiate(ctx context.Context, prepare, segments int, budget bool) (hostInstance, error)
	close() error
}

// hostInstance is one instance of a module: a memory and its segments.
type hostInstance interface {
	// call runs a prepare segment or step segment under a loop budget.
	call(ctx context.Context, prepare bool, c Call, budget uint64) error
	// pause is called between segments; it lets the host's own events through.
	pause()
	write(offset uint32, data []byte) error
	read(offset uint32, dst []byte) error
	close() error
}

// Load verifies a program and compiles it. What fails verification is refused
// with a *RefusedError, before any engine sees it. Natively, programs of equal
// bytes share their compiled code while any of them is open.
func Load(ctx context.Context, program []byte, cfg Config) (*Program, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, errors.New("wasm: tensors are copied in memory order; this host is big-endian")
	}
	limits := cfg.Limits.withDefaults()
	m, report, err := verify(program, limits)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	products, err := newProducts(m, report, cfg)
	if err != nil {
		return nil, err
	}
	host, err := compileHost(ctx, program, m.pages, cfg, products)
	if err != nil {
		return nil, err
	}
	p := &Program{manifest: m.manifest, report: report, sum: sha256.Sum256(program), host: host, products: products, calls: m.manifest.Calls(),
		tensors: make(map[string]tensorRef), open: make(map[*Instance]int)}
	for _, role := range m.manifest.roles() {
		for i := range role.tensors {
			p.tensors[role.tensors[i].Name] = tensorRef{&role.tensors[i], role.name, i}
		}
	}
	return p, nil
}

// Manifest returns the program's description. The caller must not change it.
func (p *Program) Manifest() *Manifest { return p.manifest }

// Report returns what the loader proved. The caller must not change it.
func (p *Program) Report() *Report { return p.report }

// SHA256 returns the hash of the module's bytes: the program's name in
// assignments and the address of its blob.
func (p *Program) SHA256() [sha256.Size]byte { return p.sum }

// NewInstance gives a trainer its own memory, all zeros but for the program's
// constants.
func (p *Program) NewInstance(ctx context.Context) (*Instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	h, err := p.host.instantiate(ctx, len(p.manifest.Prepare), len(p.manifest.Segments), p.report.Budgeted)
	if err != nil {
		return nil, err
	}
	in := &Instance{program: p, host: h, written: make([]bool, len(p.manifest.Frozen)), missing: len(p.manifest.Frozen)}
	p.open[in] = 0
	return in, nil
}

// Close closes the program and every instance of it, after the steps that are
// running.
func (p *Program) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	open := p.open
	p.open = nil
	p.mu.Unlock()
	var first error
	for in := range open {
		if err := in.release(); err != nil && first == nil {
			first = err
		}
	}
	if err := p.host.close(); err != nil && first == nil {
		first = err
	}
	return first
}

// lookup finds a tensor that has one of the roles.
func (p *Program) lookup(name string, dtype DType, roles ...string) (tensorRef, error) {
	t, ok := p.tensors[name]
	if !ok {
		return t, fmt.Errorf("%w: %.128q", ErrUnknownTensor, name)
	}
	for _, r := range roles {
		if t.role == r {
			if t.DType != dtype {
				return t, fmt.Errorf("%w: %s %q is %s, not %s", ErrLayout, t.role, name, t.DType, dtype)
			}
			return t, nil
		}
	}
	return t, fmt.Errorf("%w: %q is %s, want %v", ErrUnknownTensor, name, t.role, roles)
}
