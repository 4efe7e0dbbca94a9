package wasm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/quant/nf4"
)

// configs are the engines that a test can run a program in on this platform.
func configs() map[string]Config {
	return map[string]Config{"compiler": {}, "interpreter": {Interpreter: true}}
}

func load(t testing.TB, m *mod, cfg Config) *Program {
	t.Helper()
	p, err := Load(context.Background(), m.assemble(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func instance(t testing.TB, p *Program) *Instance {
	t.Helper()
	in, err := p.NewInstance(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func check(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

var (
	toyX = []float32{1, 2, 3, 4, 5, 6, 7, 8}
	toyF = []float32{1, .5, .25, 2, -1, -.5, .125, 0}
)

func fillToy(t testing.TB, in *Instance) {
	t.Helper()
	check(t, in.WriteFrozen("f", toyF), in.WriteFloat32("x", toyX), in.WriteFloat32("lr", []float32{.5}),
		in.WriteFloat32("w", []float32{1, 1, 1, 1, 1, 1, 1, 1}))
}

func TestStep(t *testing.T) {
	var sums [][32]byte
	for name, cfg := range configs() {
		t.Run(name, func(t *testing.T) {
			in := instance(t, load(t, toy(), cfg))
			fillToy(t, in)
			for range 3 {
				check(t, in.Step(t.Context()))
			}
			got, loss, want := make([]float32, 8), make([]float32, 1), float32(0)
			check(t, in.ReadFloat32("w", got), in.ReadFloat32("loss", loss))
			for i := range got {
				w := 1 + 3*.5*toyX[i]*2*toyF[i]
				if got[i] != w {
					t.Errorf("w[%d] = %v, want %v", i, got[i], w)
				}
				want += w
			}
			if loss[0] != want {
				t.Errorf("loss %v, want %v", loss[0], want)
			}
			sum, err := in.StateSHA256()
			check(t, err)
			sums = append(sums, sum)
		})
	}
	for _, s := range sums[1:] {
		if s != sums[0] {
			t.Errorf("state hashes differ: %x and %x", sums[0], s)
		}
	}
}

// TestManyTrainers runs trainers side by side on one program: each has its own
// state.
func TestManyTrainers(t *testing.T) {
	p := load(t, toy(), Config{})
	var wg sync.WaitGroup
	results := make([][]float32, 8)
	for k := range results {
		in := instance(t, p)
		fillToy(t, in)
		results[k] = make([]float32, 8)
		wg.Go(func() {
			err := in.WriteFloat32("lr", []float32{float32(k)})
			for range 20 {
				err = errors.Join(err, in.Step(context.Background()))
			}
			if err = errors.Join(err, in.ReadFloat32("w", results[k]), in.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	watchdog.Wait(t, "the instances", wg.Wait)
	for k, got := range results {
		for i, v := range got {
			if want := 1 + 20*float32(k)*toyX[i]*2*toyF[i]; v != want {
				t.Errorf("trainer %d: w[%d] = %v, want %v", k, i, v, want)
			}
		}
	}
}

func TestInstanceErrors(t *testing.T) {
	ctx := context.Background()
	p := load(t, toy(), Config{})
	in := instance(t, p)
	if err := in.Step(ctx); !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), `"f"`) {
		t.Errorf("step without frozen tensors: %v", err)
	}
	fillToy(t, in)
	for _, c := range []struct {
		what string
		err  error
		want error
	}{
		{"unknown name", in.WriteFloat32("y", toyX), ErrUnknownTensor},
		{"short", in.WriteFloat32("x", toyX[:7]), ErrLayout},
		{"long", in.WriteFloat32("w", make([]float32, 9)), ErrLayout},
		{"empty", in.WriteFloat32("lr", nil), ErrLayout},
		{"type", in.WriteInt32("x", make([]int32, 8)), ErrLayout},
		{"read type", in.ReadInt32("w", make([]int32, 8)), ErrLayout},
		{"read short", in.ReadFloat32("w", make([]float32, 4)), ErrLayout},
		{"write to output", in.WriteFloat32("loss", toyX[:1]), ErrUnknownTensor},
		{"write to frozen", in.WriteFloat32("f", toyF), ErrUnknownTensor},
		{"freeze state", in.WriteFrozen("w", toyX), ErrUnknownTensor},
		{"freeze twice", in.WriteFrozen("f", toyF), ErrLayout},
		{"codes for f32", in.WriteFrozenNF4("f", make([]byte, 4), make([]float32, 1)), ErrLayout},
		{"int for f32", in.WriteFrozenInt32("f", make([]int32, 8)), ErrLayout},
		{"read frozen", in.ReadFloat32("f", make([]float32, 8)), ErrUnknownTensor},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.err, c.want)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := in.Step(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled step: %v", err)
	}
	check(t, in.Step(ctx), in.Close(), in.Close())
	for what, err := range map[string]error{
		"step": in.Step(ctx), "write": in.WriteFloat32("x", toyX), "read": in.ReadFloat32("w", make([]float32, 8)),
		"freeze": in.WriteFrozen("f", toyF), "freeze codes": in.WriteFrozenNF4("f", nil, nil), "snapshot": in.Snapshot(&bytes.Buffer{}),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after close: %v", what, err)
		}
	}
	open := instance(t, p)
	check(t, p.Close(), p.Close())
	if _, err := p.NewInstance(ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("instance of a closed program: %v", err)
	}
	if err := open.Step(ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("step after the program closed: %v", err)
	}
}

// stopAfter is a context that is cancelled at the n-th look.
type stopAfter struct {
	context.Context
	looks int
}

func (c *stopAfter) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

func TestStepStopsBetweenSegments(t *testing.T) {
	in := instance(t, load(t, toy(), Config{}))
	fillToy(t, in)
	// Three segments in all: the second look is before s0, which must not run.
	if err := in.Step(&stopAfter{context.Background(), 1}); !errors.Is(err, context.Canceled) {
		t.Fatalf("step: %v", err)
	}
	w := make([]float32, 8)
	check(t, in.ReadFloat32("w", w))
	for i, v := range w {
		if v != 1 {
			t.Errorf("w[%d] = %v: a segment ran after cancellation", i, v)
		}
	}
}

// TestTrap: what traps is an error, and the instance can be used again.
func TestTrap(t *testing.T) {
	for name, bad := range map[string][]byte{
		"unreachable":   {opUnreachable},
		"out of memory": code(i32c(-4), f32load(0), opDrop),
		"past the end":  code(i32c(PageSize-3), f32load(0), opDrop),
		"fill outside":  code(i32c(PageSize-8), i32c(0), i32c(9), 0xfc, 11, 0),
		"division":      code(i32c(1), i32c(0), 0x6d, opDrop),
		// A budgeted loop that asks for more than there is: it would never return.
		"budget": code(i32c(1<<30-1), set(0), dynamic(0, 1, 1000, nil)),
	} {
		for engine, cfg := range configs() {
			t.Run(name+"/"+engine, func(t *testing.T) {
				m := toy()
				m.funcs[2] = fn{locals: 1, body: code(
					i32c(0), f32load(48), f32c(1), 0x5b, opIf, blockEmpty, bad, opEnd)} // if lr == 1
				in := instance(t, load(t, m, cfg))
				fillToy(t, in)
				check(t, in.Step(t.Context()), in.WriteFloat32("lr", []float32{1}))
				for range 2 {
					if err := in.Step(t.Context()); !errors.Is(err, ErrTrap) || !strings.Contains(err.Error(), "s0") {
						t.Errorf("step: %v", err)
					} else if causes, ok := err.(interface{ Unwrap() []error }); !ok || len(causes.Unwrap()) != 2 {
						t.Errorf("step: %#v does not hold the engine's error", err)
					}
				}
				check(t, in.WriteFloat32("lr", []float32{0}), in.Step(t.Context()))
			})
		}
	}
}

func TestFrozenNF4(t *testing.T) {
	m := toy()
	codes, scales := uint32(1024), uint32(2048)
	m.manifest.Frozen = append(m.manifest.Frozen,
		Tensor{Name: "q", DType: Float32, Shape: []int{3, 33}, Offset: codes, NF4: &NF4{Block: 64, Scales: scales}},
		Tensor{Name: "p", DType: Float32, Shape: []int{3, 33}, Offset: codes + 256, NF4: &NF4{Block: 64, Scales: scales + 256}},
		Tensor{Name: "ids", DType: Int32, Shape: []int{2}, Offset: 4096})
	in := instance(t, load(t, m, Config{}))
	fillToy(t, in)
	src := make([]float32, 99)
	for i := range src {
		src[i] = float32(math.Sin(float64(i)))
	}
	c, s := make([]byte, nf4.CodesLen(99)), make([]float32, nf4.Blocks(99, 64))
	check(t, nf4.Encode(c, s, src, 64), in.WriteFrozen("q", src))
	if err := in.WriteFrozenNF4("p", c[1:], s); !errors.Is(err, ErrLayout) {
		t.Errorf("short codes: %v", err)
	}
	check(t, in.WriteFrozenNF4("p", c, s), in.WriteFrozenInt32("ids", []int32{7, -1}), in.Step(t.Context()))
	var snap bytes.Buffer
	check(t, in.Snapshot(&snap))
	// frozen f, q, p, ids, then state and inputs
	part := len(c) + 4*len(s)
	if want := 32 + 2*part + 8 + 32 + 36; snap.Len() != want {
		t.Fatalf("snapshot of %d bytes, want %d", snap.Len(), want)
	}
	q, p := snap.Bytes()[32:32+part], snap.Bytes()[32+part:32+2*part]
	if !bytes.Equal(q, p) {
		t.Error("WriteFrozen and WriteFrozenNF4 differ")
	}
	other := instance(t, in.Program())
	check(t, other.Restore(bytes.NewReader(snap.Bytes())), other.Step(t.Context()), in.Step(t.Context()))
	a, err := in.StateSHA256()
	check(t, err)
	if b, err := other.StateSHA256(); err != nil || a != b {
		t.Errorf("a restored instance computes %x, %v, the original %x", b, err, a)
	}
	if err := other.Restore(bytes.NewReader(snap.Bytes())); !errors.Is(err, ErrLayout) {
		t.Errorf("restored twice: %v", err)
	}
	if err := instance(t, in.Program()).Restore(bytes.NewReader(snap.Bytes()[1:])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short snapshot: %v", err)
	}
	back := make([]float32, 99)
	nf4.Decode(back, q[:len(c)], s, 64)
	for i := range back {
		// The widest gap between levels is 0.304 of the scale.
		if d := math.Abs(float64(back[i] - src[i])); d > .153 {
			t.Errorf("value %d: %v came back as %v", i, src[i], back[i])
		}
	}
}

// TestSharedCode: programs of equal bytes share compiled code, and closing one
// leaves the other working.
func TestSharedCode(t *testing.T) {
	first, second := load(t, toy(), Config{}), load(t, toy(), Config{})
	if first.SHA256() != second.SHA256() {
		t.Error("equal programs, different hashes")
	}
	in := instance(t, second)
	fillToy(t, in)
	gone := instance(t, first)
	check(t, first.Close(), in.Step(t.Context()))
	if err := gone.Step(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("instance of a closed program: %v", err)
	}
	check(t, second.Close())
	third := load(t, toy(), Config{})
	in = instance(t, third)
	fillToy(t, in)
	check(t, in.Step(t.Context()))
}
