//go:build !js

package wasm

import (
	"context"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// compiled is wazero's cache of machine code, by content, shared by all programs
// of the process. It holds machine code only and lives as long as the process.
var compiled = sync.OnceValue(wazero.NewCompilationCache)

type wazeroModule struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

// compileHost compiles a verified program. Every program has a runtime of its
// own, so that closing it frees all it holds, and no memory beyond its own
// declared size can be had in it.
func compileHost(ctx context.Context, program []byte, pages uint32, cfg Config) (hostModule, error) {
	rc := wazero.NewRuntimeConfig()
	if cfg.Interpreter {
		rc = wazero.NewRuntimeConfigInterpreter()
	}
	// WithCloseOnContextDone is left off: it makes loops up to 15 times slower.
	// Segments end by themselves, as the verifier proved.
	rc = rc.WithMemoryLimitPages(max(pages, 1)).WithCompilationCache(compiled()).
		WithCoreFeatures(api.CoreFeaturesV2).WithCustomSections(false).WithDebugInfoEnabled(false)
	rt := wazero.NewRuntimeWithConfig(ctx, rc)
	code, err := rt.CompileModule(ctx, program)
	if err != nil {
		_ = rt.Close(ctx)
		return nil, refuse("module", "%v", err) // what the verifier leaves to the engine: types
	}
	return &wazeroModule{rt, code}, nil
}

func (m *wazeroModule) instantiate(ctx context.Context, prepare, segments int, budget bool) (hostInstance, error) {
	mod, err := m.runtime.InstantiateModule(ctx, m.code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("wasm: instantiate: %w", err)
	}
	in := &wazeroInstance{module: mod, memory: mod.Memory()}
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

func (m *wazeroModule) close() error { return m.runtime.Close(context.Background()) }

type wazeroInstance struct {
	module            api.Module
	memory            api.Memory
	fuel              api.MutableGlobal // nil: no loop draws on a budget
	prepare, segments []api.Function
}

func (in *wazeroInstance) call(ctx context.Context, prepare bool, i int, budget uint64) error {
	f := in.segments
	if prepare {
		f = in.prepare
	}
	if in.fuel != nil {
		in.fuel.Set(budget)
	}
	return f[i].CallWithStack(ctx, nil)
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
