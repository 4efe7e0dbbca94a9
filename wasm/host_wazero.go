//go:build !js

package wasm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/starling-fl/starling/wasm/kernel"
)

// wazeroModule is machine code that all open programs of equal bytes share. Every
// module has a runtime of its own, so that closing it frees all that it holds,
// and no memory beyond its own declared size can be had in it.
type wazeroModule struct {
	key     moduleKey
	runtime wazero.Runtime
	code    wazero.CompiledModule
	users   int // guarded by shared.mu
}

type moduleKey struct {
	sum         [sha256.Size]byte
	interpreter bool
}

// shared holds the modules in use, by content. A module leaves with its last
// user, so that a stream of programs cannot fill the process.
var shared = struct {
	mu      sync.Mutex
	modules map[moduleKey]*wazeroModule
}{modules: make(map[moduleKey]*wazeroModule)}

// compileHost compiles a verified program, or finds it compiled.
func compileHost(ctx context.Context, program []byte, pages uint32, cfg Config, _ *products) (hostModule, error) {
	key := moduleKey{sha256.Sum256(program), cfg.Interpreter}
	// Held while compiling: many trainers that load one program at once compile
	// it once. Compilation takes some 10 ms and its input is bounded.
	shared.mu.Lock()
	defer shared.mu.Unlock()
	m := shared.modules[key]
	if m == nil {
		var err error
		if m, err = compileWazero(ctx, program, pages, cfg); err != nil {
			return nil, err
		}
		m.key = key
		shared.modules[key] = m
	}
	m.users++
	return m, nil
}

func compileWazero(ctx context.Context, program []byte, pages uint32, cfg Config) (*wazeroModule, error) {
	rc := wazero.NewRuntimeConfig()
	if cfg.Interpreter {
		rc = wazero.NewRuntimeConfigInterpreter()
	}
	// WithCloseOnContextDone is left off: it makes loops up to 15 times slower.
	// Segments end by themselves, as the verifier proved.
	rc = rc.WithMemoryLimitPages(max(pages, 1)).WithCoreFeatures(api.CoreFeaturesV2).
		WithCustomSections(false).WithDebugInfoEnabled(false)
	rt := wazero.NewRuntimeWithConfig(ctx, rc)
	code, err := rt.CompileModule(ctx, program)
	if err != nil {
		_ = rt.Close(ctx)
		return nil, refuse("module", "%v", err) // what the verifier leaves to the engine: types
	}
	return &wazeroModule{runtime: rt, code: code}, nil
}

func (m *wazeroModule) instantiate(ctx context.Context, prepare, segments int, budget bool) (hostInstance, error) {
	mod, err := m.runtime.InstantiateModule(withMemory(ctx), m.code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("wasm: instantiate: %w", err)
	}
	in := &wazeroInstance{module: mod, memory: mod.Memory()}
	// The memory cannot grow, so this is all of it for as long as the instance lives.
	in.all, _ = in.memory.Read(0, in.memory.Size())
	if budget {
		in.fuel = mod.ExportedGlobal("fuel").(api.MutableGlobal)
	}
	for i := range prepare {
		in.prepare = append(in.prepare, mod.ExportedFunction(segmentExport(true, i)))
	}
	for i := range segments {
		in.segments = append(in.segments, mod.ExportedFunction(segmentExport(false, i)))
	}
	return in, nil
}

func (m *wazeroModule) close() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if m.users--; m.users > 0 {
		return nil
	}
	delete(shared.modules, m.key)
	return m.runtime.Close(context.Background())
}

type wazeroInstance struct {
	module            api.Module
	memory            api.Memory
	all               []byte
	fuel              api.MutableGlobal // nil: no loop draws on a budget
	team              *kernel.Team      // during a step on several cores
	prepare, segments []api.Function
}

func (in *wazeroInstance) call(ctx context.Context, prepare bool, c Call, budget uint64) error {
	f := in.segments
	if prepare {
		f = in.prepare
	}
	if in.fuel != nil {
		in.fuel.Set(budget)
	}
	if !c.Told {
		return f[c.Segment].CallWithStack(ctx, nil)
	}
	return f[c.Segment].CallWithStack(ctx, []uint64{uint64(c.Round)})
}

func (in *wazeroInstance) pause() {}

// write and read cannot miss: the verifier held every tensor against the memory's
// fixed size. The checks stay, as an error is better than a panic.
func (in *wazeroInstance) write(offset uint32, data []byte) error {
	if !in.memory.Write(offset, data) {
		return fmt.Errorf("%w: %d bytes at %d are outside the memory", ErrLayout, len(data), offset)
	}
	return nil
}

func (in *wazeroInstance) read(offset uint32, dst []byte) error {
	src, ok := in.memory.Read(offset, uint32(len(dst)))
	if !ok {
		return fmt.Errorf("%w: %d bytes at %d are outside the memory", ErrLayout, len(dst), offset)
	}
	copy(dst, src)
	return nil
}

func (in *wazeroInstance) close() error { return in.module.Close(context.Background()) }
