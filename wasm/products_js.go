package wasm

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"syscall/js"

	"github.com/starling-fl/starling/wasm/kernel"
)

// Kernels returns what computes declared products in a browser: the program's own
// code.
func Kernels() []string { return []string{Twin} }

// FusedKernels is Kernels for fused programs: nothing where Fuses is false.
func FusedKernels() []string {
	if !Fuses() {
		return nil
	}
	return []string{Twin}
}

// Fuses reports whether this browser's f32x4.relaxed_madd is a fused multiply-add. It
// may also round twice: on processors without FMA it does.
func Fuses() bool { return relaxedFuses() }

var relaxedFuses = sync.OnceValue(func() bool { return fuses(maddProbe) })

// maddProbe is a module with a page of memory and a function "f" that replaces the
// fourth vector at an address by the first times the second plus the third.
var maddProbe = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x05\x01\x60\x01\x7f\x00" + // type (i32) -> ()
	"\x03\x02\x01\x00" +
	"\x05\x03\x01\x00\x01" +
	"\x07\x09\x02\x01m\x02\x00\x01f\x00\x00" +
	"\x0a\x1f\x01\x1d\x00" +
	"\x20\x00" +
	"\x20\x00\xfd\x00\x04\x00" +
	"\x20\x00\xfd\x00\x04\x10" +
	"\x20\x00\xfd\x00\x04\x20" +
	"\xfd\x85\x02" +
	"\xfd\x0b\x04\x30" +
	"\x0b")

// fuses holds a probe against kernel.FMA, on numbers of every size and on those where
// one rounding and two differ.
func fuses(probe []byte) bool {
	engine, code := js.Global().Get("WebAssembly"), js.Global().Get("Uint8Array").New(len(probe))
	js.CopyBytesToJS(code, probe)
	if engine.IsUndefined() || !engine.Call("validate", code).Bool() {
		return false
	}
	exports := engine.Get("Instance").New(engine.Get("Module").New(code)).Get("exports")
	memory := js.Global().Get("Uint8Array").New(exports.Get("m").Get("buffer"))
	rnd := rand.New(rand.NewPCG(1, 2)) // a test: nothing here is secret
	const vectors = 1 << 10
	data, want := make([]byte, 64*vectors), make([]float32, 4*vectors)
	for i := range want {
		v := [3]float32{1 + rnd.Float32(), 1 + rnd.Float32(), -1 - rnd.Float32()}
		if i%4 == 0 {
			for j := range v {
				v[j] = math.Float32frombits(rnd.Uint32())
			}
		}
		for j, x := range v {
			binary.LittleEndian.PutUint32(data[i/4*64+16*j+i%4*4:], math.Float32bits(x))
		}
		want[i] = kernel.FMA(v[0], v[1], v[2])
	}
	js.CopyBytesToJS(memory, data)
	for at := range vectors {
		exports.Call("f", 64*at)
	}
	js.CopyBytesToGo(data, memory)
	for i, w := range want {
		got := math.Float32frombits(binary.LittleEndian.Uint32(data[i/4*64+48+i%4*4:]))
		if math.Float32bits(got) != math.Float32bits(w) && (got == got || w == w) {
			return false
		}
	}
	return true
}

// products are those that several workers can compute at once, in parts.
type products struct {
	helpers int         // workers beside this one
	list    []product   // with parts
	at      map[int]int // by first segment, of a step with all rounds: index in list
}

type product struct {
	*Product
	call Call // of its first segment
}

// newProducts returns nil where one worker computes everything.
func newProducts(m *module, report *Report, cfg Config) (*products, error) {
	switch {
	case !m.manifest.Fused || len(m.manifest.Products) == 0:
	case !report.Relaxed:
		return nil, refuse("module", "it has no code for fused products: the form for v8 runs here")
	case !Fuses():
		return nil, fmt.Errorf("%w: this browser lacks the instructions of the program's fused products", ErrArithmetic)
	}
	ps := &products{helpers: min(cfg.Cores, maxParts) - 1, at: make(map[int]int)}
	calls := m.manifest.Calls()
	for i := range m.step.Products {
		if p := &m.step.Products[i]; len(p.Parts) > 0 {
			ps.at[p.First] = len(ps.list)
			ps.list = append(ps.list, product{p, calls[p.First]})
		}
	}
	// Each worker would have a loop budget of its own; the compiler's programs have none.
	if ps.helpers < 1 || len(ps.list) == 0 || report.Budgeted || js.Global().Get("starlingTeam").Type() != js.TypeFunction {
		return nil, nil
	}
	return ps, nil
}

// start makes an instance whose memory other workers share: what the page's starlingTeam
// (web/edge/src/threads.js) promises.
func (ps *products) start(ctx context.Context, code js.Value) (js.Value, error) {
	list := make([]any, len(ps.list))
	for i, p := range ps.list {
		parts := make([]any, len(p.Parts))
		for j, n := range p.Parts {
			parts[j] = n
		}
		list[i] = map[string]any{"first": p.call.Segment, "round": p.call.Round, "parts": parts}
	}
	return await(ctx, js.Global().Call("starlingTeam", code, list, ps.helpers))
}

// share has the team compute a product.
func (in *jsInstance) share(product int) (err error) {
	defer caught(&err)
	in.team.Call("run", product)
	return nil
}

// begin readies nothing: a page's workers are there all the time.
func (ps *products) begin(hostInstance) (end func()) { return func() {} }

// run computes the product that starts at segment i, if one does and others can help. It
// returns the segments that this leaves out.
func (ps *products) run(_ context.Context, host hostInstance, i int) (segments int, err error) {
	if ps == nil {
		return 0, nil
	}
	at, ok := ps.at[i]
	if !ok {
		return 0, nil
	}
	if err := host.(*jsInstance).share(at); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrTrap, err)
	}
	return ps.list[at].Count, nil
}
