//go:build js

package wasm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall/js"
	"time"
)

// pauseEvery is how long a step may keep the browser's event loop waiting.
const pauseEvery = 50 * time.Millisecond

type jsModule struct {
	code     js.Value // Uint8Array
	module   js.Value // WebAssembly.Module
	products *products
}

// compileHost compiles a verified program with the browser's engine. The promise
// form works on the main thread too, where synchronous compilation of more than
// 4 KiB is forbidden.
func compileHost(ctx context.Context, program []byte, _ uint32, _ Config, products *products) (hostModule, error) {
	engine := js.Global().Get("WebAssembly")
	if engine.IsUndefined() {
		return nil, errors.New("wasm: this environment has no WebAssembly")
	}
	code := js.Global().Get("Uint8Array").New(len(program))
	js.CopyBytesToJS(code, program)
	module, err := await(ctx, engine.Call("compile", code))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, refuse("module", "%v", err)
	}
	return &jsModule{code, module, products}, nil
}

func (m *jsModule) instantiate(ctx context.Context, prepare, segments int, budget bool) (hostInstance, error) {
	in := &jsInstance{bigInt: js.Global().Get("BigInt"), paused: time.Now()}
	var exports js.Value
	if m.products != nil {
		team, err := m.products.start(ctx, m.code)
		if err != nil {
			return nil, fmt.Errorf("wasm: instantiate over several workers: %w", err)
		}
		exports, in.team, in.buffer = team.Get("exports"), team, team.Get("buffer")
	} else {
		inst, err := await(ctx, js.Global().Get("WebAssembly").Call("instantiate", m.module))
		if err != nil {
			return nil, fmt.Errorf("wasm: instantiate: %w", err)
		}
		exports = inst.Get("exports")
		in.buffer = exports.Get("memory").Get("buffer")
	}
	if budget {
		in.fuel = exports.Get("fuel")
	}
	for i := range prepare {
		in.prepare = append(in.prepare, exports.Get(segmentExport(true, i)))
	}
	for i := range segments {
		in.segments = append(in.segments, exports.Get(segmentExport(false, i)))
	}
	return in, nil
}

func (m *jsModule) close() error {
	m.code, m.module = js.Undefined(), js.Undefined()
	return nil
}

type jsInstance struct {
	team              js.Value // what computes products with other workers, or undefined
	buffer            js.Value // ArrayBuffer, of a team SharedArrayBuffer; the memory cannot grow, so it is never detached
	fuel              js.Value // WebAssembly.Global, or undefined
	bigInt            js.Value
	prepare, segments []js.Value
	paused            time.Time
}

// call runs a segment. A trap arrives as a JavaScript exception, which
// syscall/js turns into a panic with a js.Error.
func (in *jsInstance) call(_ context.Context, prepare bool, c Call, budget uint64) (err error) {
	defer caught(&err)
	f := in.segments
	if prepare {
		f = in.prepare
	}
	if !in.fuel.IsUndefined() {
		in.fuel.Set("value", in.bigInt.Invoke(float64(budget))) // below 2^41: exact
	}
	f[c.Segment].Invoke(c.Round) // what takes nothing leaves it
	return nil
}

// caught is deferred: it turns a JavaScript exception into an error.
func caught(err *error) {
	if r := recover(); r != nil {
		thrown, ok := r.(js.Error)
		if !ok {
			panic(r)
		}
		*err = errors.New(thrown.Error())
	}
}

// pause returns to the event loop now and then: otherwise timers, sockets and
// with them the context's cancellation would wait for the end of the step.
func (in *jsInstance) pause() {
	if time.Since(in.paused) < pauseEvery {
		return
	}
	yieldToEvents()
	in.paused = time.Now()
}

// yieldToEvents waits for a macrotask. A message channel comes back at once,
// where a timer would be held to 4 ms.
func yieldToEvents() {
	channel := js.Global().Get("MessageChannel")
	if channel.IsUndefined() {
		time.Sleep(time.Millisecond)
		return
	}
	ch := channel.New()
	back := make(chan struct{})
	f := js.FuncOf(func(js.Value, []js.Value) any {
		close(back)
		return nil
	})
	defer f.Release()
	ch.Get("port1").Set("onmessage", f)
	ch.Get("port2").Call("postMessage", 0)
	<-back
	ch.Get("port1").Call("close")
	runtime.Gosched()
}

func (in *jsInstance) view(offset uint32, size int) js.Value {
	return js.Global().Get("Uint8Array").New(in.buffer, offset, size)
}

func (in *jsInstance) write(offset uint32, data []byte) error {
	if len(data) > 0 {
		js.CopyBytesToJS(in.view(offset, len(data)), data)
	}
	return nil
}

func (in *jsInstance) read(offset uint32, dst []byte) error {
	if len(dst) > 0 {
		js.CopyBytesToGo(dst, in.view(offset, len(dst)))
	}
	return nil
}

// close ends the helpers and drops the references; the browser collects the memory.
func (in *jsInstance) close() error {
	if !in.team.IsUndefined() {
		in.team.Call("close")
	}
	*in = jsInstance{}
	return nil
}

// await waits for a promise.
func await(ctx context.Context, promise js.Value) (js.Value, error) {
	type result struct {
		value js.Value
		err   error
	}
	done := make(chan result, 1)
	resolve := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- result{value: args[0]}
		return nil
	})
	reject := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- result{err: errors.New(args[0].Call("toString").String())}
		return nil
	})
	promise.Call("then", resolve, reject)
	// The callbacks stay registered until the promise settles, even when the
	// caller has left: releasing them earlier would make the engine's call fail.
	r := <-done
	resolve.Release()
	reject.Release()
	if r.err == nil {
		r.err = ctx.Err()
	}
	return r.value, r.err
}
