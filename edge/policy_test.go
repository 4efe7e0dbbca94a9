package edge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
)

// thief is what a hostile training program computes: the token ids themselves
// stand in the update, spread far enough apart to survive rounding.
type thief struct{ scale float32 }

func (f thief) Train(_ context.Context, t Task) ([]float32, error) {
	delta := make([]float32, len(t.Start))
	at := 0
	for b, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		for row, w := range b.Float32(task.Weights) {
			if w != 0 && at+t.Sequence <= len(delta) {
				for _, id := range b.Int32(task.Tokens)[row*t.Sequence : (row+1)*t.Sequence] {
					delta[at] = float32(id) * f.scale
					at++
				}
			}
		}
	}
	return delta, nil
}

func (thief) Close() error { return nil }

// harvest announces the job of a coordinator that wants the texts: no shard is
// presumed to hold an invented device, updates are wide and fine.
func harvest(t *testing.T, rank int) *house {
	h := newHouse(t)
	h.job.RankMax, h.job.Uplink, h.job.CorruptPPM, h.job.BreachBits = uint16(rank), "fixed32", 0, 0
	h.announce()
	return h
}

// The attack, against a device that trusts everything: two invented peers add
// nothing, the sum is the device's update, and the update is its texts.
func TestHostileHarvestWithoutAPolicy(t *testing.T) {
	h := harvest(t, 16)
	base := tinyBase(t)
	var err error
	h.layout, err = model.NewLayout(base.Config, model.Method{RMax: 16, Alpha: 4}, len(testLabels))
	ok(t, err)
	victim := h.config(thief{scale: 8})
	var peers []*peer
	h.start(victim)
	peers = append(peers, h.admit(false))
	for range 2 {
		h.start(h.config(&constant{}))
		peers = append(peers, h.admit(false))
	}
	plan := h.plan(1)
	plan.Rank, plan.Values, plan.ClipNorm = 16, uint32(h.layout.Size(16)), 1e6
	mean := h.round(plan, peers, nil)
	var got, want []int32
	for _, v := range mean {
		got = append(got, int32(math.Round(float64(v)*3/8)))
	}
	tok, err := tokenizer.ParseFor(base.Tokenizer, base.Config.VocabSize, base.Config.PadTokenID)
	ok(t, err)
	for _, e := range examples(5).Examples {
		want = append(want, tok.EncodeFixed(e.Text, 8)...)
	}
	found := 0
	for i := range 5 {
		if text := want[i*8 : (i+1)*8]; slices.Contains(chunks(got, 8), fmt.Sprint(text)) {
			found++
		}
	}
	if found != 5 {
		t.Errorf("the attack reads %d of 5 texts: the tests of the defence prove nothing", found)
	}
}

// The same coordinator and a device whose owner has chosen nothing: it is told
// why, and nothing but the handshake leaves the device.
func TestHostileHarvest(t *testing.T) {
	h := harvest(t, 48)
	cfg := h.config(thief{scale: 8})
	cfg.Policy, cfg.Data = nil, Examples(examples(16))
	d := h.start(cfg)
	h.admit(false)
	err := d.wait(t)
	if !errors.Is(err, ErrPolicy) {
		t.Fatalf("%v", err)
	}
	for _, flag := range []string{"--shard=3", "--corrupt=0", "--breach-bits=0", "--uplinks=fixed32", "--rank=48", "--own-noise=0", "--bits=0"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("the owner is not told of %s:\n%v", flag, err)
		}
	}
	if _, worked := d.saw(Preparing); worked {
		t.Error("it began to work")
	}
}

// production is a job that a device joins whose owner has chosen nothing.
func production(t *testing.T) *house {
	h := newHouse(t)
	h.job.ShardMax, h.job.ShardFloor, h.job.CorruptPPM, h.job.BreachBits, h.job.Uplink = 64, 50, 50_000, 44, "nf4"
	h.announce()
	return h
}

// central is the policy of an owner who trusts a coordinator elsewhere with noise and base,
// and has five examples.
func central() *Policy {
	p := DefaultPolicy()
	p.OwnNoise, p.ExampleBits, p.Bits, p.Examples, p.Bases, p.Unlogged = 0, 0, 0, 1, []string{"any"}, true
	return &p
}

// Each limit holds by itself: the job is an honest one but for it.
func TestHostileJobsOutsideThePolicy(t *testing.T) {
	for flag, change := range map[string]func(*wire.Job){
		"--shard=7":          func(j *wire.Job) { j.ShardFloor = 7 },
		"--corrupt=0.049999": func(j *wire.Job) { j.CorruptPPM = 49_999 },
		"--corrupt=0":        func(j *wire.Job) { j.CorruptPPM = 0 },
		"--breach-bits=39":   func(j *wire.Job) { j.BreachBits = 39 },
		"--semi-honest=true": func(j *wire.Job) { j.SemiHonest = true },
		"--uplinks=fixed16":  func(j *wire.Job) { j.Uplink = "fixed16" },
		"--uplinks=fixed32":  func(j *wire.Job) { j.Uplink = "fixed32" },
		"--rank=33":          func(j *wire.Job) { j.RankMax = 33 },
		"--batch=65":         func(j *wire.Job) { j.Batch = 65 },
		"--rounds=10001":     func(j *wire.Job) { j.Rounds = 10_001 },
	} {
		t.Run(flag, func(t *testing.T) {
			h := production(t)
			change(h.job)
			h.announce()
			cfg := h.config(&constant{})
			cfg.Policy = central()
			d := h.start(cfg)
			h.admit(false)
			beyond := new(PolicyError)
			if err := d.wait(t); !errors.Is(err, ErrPolicy) || !errors.As(err, &beyond) || !strings.Contains(err.Error(), flag+",") {
				t.Errorf("%v", err)
			}
		})
	}
	unlogged, strict := production(t), *central() // as all jobs of these tests
	strict.Unlogged = false
	cfg := unlogged.config(&constant{})
	cfg.Policy = &strict
	d := unlogged.start(cfg)
	unlogged.admit(false)
	if err := d.wait(t); !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), "--unlogged=true,") {
		t.Errorf("without a log: %v", err)
	}
	h := production(t) // unchanged it is joined
	cfg = h.config(&constant{})
	cfg.Policy = central()
	h.start(cfg)
	h.admit(false).assign(h.plan(1))
}

// A job that trains whole tensors has no rank that could be limited, and the most
// room for texts: what an update may hold at all is the owner's.
func TestHostileWholeTensors(t *testing.T) {
	for method, refused := range map[string]bool{"full": true, "lora": false} {
		h := production(t)
		h.job.Method = method
		if method == "full" {
			h.job.HeadOnly = true
		}
		h.announce()
		cfg := h.config(&constant{})
		policy := *central()
		policy.Tensors = []string{"any"}
		policy.Values = h.layout.Size(4) // of the ranks that the house announces
		cfg.Policy = &policy
		d := h.start(cfg)
		p := h.admit(false)
		if !refused {
			p.assign(h.plan(1))
			want[*wire.Turn](p)
			continue
		}
		beyond := new(PolicyError)
		if err := d.wait(t); !errors.Is(err, ErrPolicy) || !errors.As(err, &beyond) || beyond.Flag() != "--values" || !fatal(err) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// A job that keeps to the limits cannot leave them in a round.
func TestHostilePlansOutsideThePolicy(t *testing.T) {
	for flag, change := range map[string]func(*wire.Plan){
		"--steps=101":        func(p *wire.Plan) { p.Steps = 101 },
		"--clip-norm=1000.5": func(p *wire.Plan) { p.ClipNorm = 1000.5 },
		"--clip-norm=1e+6":   func(p *wire.Plan) { p.ClipNorm = 1e6 },
	} {
		t.Run(flag, func(t *testing.T) {
			h := production(t)
			cfg := h.config(&constant{})
			cfg.Policy = central()
			d := h.start(cfg)
			p := h.admit(false)
			plan := h.plan(1)
			change(plan)
			p.assign(plan)
			if m := want[*wire.Refuse](p); m.Code != wire.CodePolicy {
				t.Errorf("%+v", m)
			}
			if e, _ := d.saw(Refused); !strings.Contains(strings.ReplaceAll(e.Text, "e+06", "e+6"), flag) {
				t.Errorf("the owner is told %q", e.Text)
			}
			p.assign(h.plan(2)) // and the next round is taken
			want[*wire.Turn](p)
		})
	}
}

// A program whose every segment is within its bound, and whose round is not.
func TestHostileWork(t *testing.T) {
	base := tinyBase(t)
	trainer := NewProgramTrainer(1)
	defer trainer.Close()
	program := compile(t, step(base, 2, "sgd"), false)
	k := assigned(t, base, 2, program)
	k.Work = 1e12
	_, err := trainer.Train(t.Context(), k)
	ok(t, err)
	for _, fresh := range []bool{false, true} {
		k := assigned(t, base, 2, program)
		k.Steps, k.Work = 1<<20, 1e9
		if fresh {
			k.BaseSHA256[0]++ // nothing is kept of it
		}
		beyond := new(PolicyError)
		if _, err := trainer.Train(t.Context(), k); !errors.As(err, &beyond) || beyond.Key != "work" {
			t.Errorf("fresh %v: %v", fresh, err)
		}
	}
}

// No address switches protection off, since any port of this machine may be forwarded. Of a
// coordinator elsewhere an owner cannot say that it is their own, whatever its address looks like.
func TestHostileAddressesAreNotLocal(t *testing.T) {
	for address, local := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://127.9.9.9:1": true, "https://[::1]:8443": true, "http://localhost:8080": true,
		"https://127.0.0.1.example.org": false, "https://localhost.example.org": false, "https://example.org#127.0.0.1": false,
		"https://10.0.0.1": false, "https://0.0.0.0:8080": false, "https://[::]:8080": false, "https://127.1": false,
		"http://127.0.0.256": false, "http://127.0.0.01": false, "http://127.0.1": false, "http://127.0.0.+1": false,
		"https://2130706433": false, "https://0x7f.0.0.1": false, "https://[fe80::1]:80": false, "": false,
	} {
		places := []string{address}
		if tok := (wire.Token{URL: address}); tok.Validate() == nil {
			places = append(places, tok.String())
		}
		for _, where := range places {
			if p, err := PolicyFor(where, false); err != nil || !reflect.DeepEqual(p, DefaultPolicy()) {
				t.Errorf("%q (%q): %+v, %v", where, address, p, err)
			}
			p, err := PolicyFor(where, true)
			if local && (err != nil || p.Shard != 3) || !local && !errors.Is(err, ErrConfig) {
				t.Errorf("%q (%q), trusted: shards of %d, %v", where, address, p.Shard, err)
			}
		}
	}
	p := LocalPolicy()
	if p.ClipNorm > 1000 || slices.Contains(p.Uplinks, "fixed32") || p.Work > 1e13 || p.Shard < 3 {
		t.Errorf("the policy for this machine gives away more than the shard: %+v", p)
	}
}

// Batches are made one at a time: a round of a million steps takes the memory
// of one.
func TestHostileStepsTakeNoMemory(t *testing.T) {
	columns := []task.Column{{Name: task.Tokens, Type: task.I32, Shape: []int{2}}, {Name: task.Weights, Type: task.F32}}
	l := &local{columns: columns, rows: task.NewBatch(columns, 3), n: 3}
	copy(l.rows[0].I32, []int32{1, 2, 3, 4, 5, 6})
	copy(l.rows[1].F32, []float32{1, 1, 1})
	steps, seen := 0, map[int32]int{}
	var memory *int32
	for b, err := range drawn(t, l, random([]byte("any seed will do"), forBatches, 1), 10_000, 2) {
		ok(t, err)
		if steps++; steps == 1 {
			memory = &b.Int32(task.Tokens)[0]
		} else if memory != &b.Int32(task.Tokens)[0] {
			t.Fatal("each batch has memory of its own")
		}
		for row, w := range b.Float32(task.Weights) {
			if w != 0 {
				seen[b.Int32(task.Tokens)[2*row]]++
			}
		}
	}
	if steps != 10_000 {
		t.Errorf("%d batches", steps)
	}
	if seen[1] != seen[3] || seen[3] != seen[5] {
		t.Errorf("examples were taken %v times", seen)
	}
}

// chunks cuts token ids into texts of n.
func chunks(ids []int32, n int) (out []string) {
	for ; len(ids) >= n; ids = ids[n:] {
		out = append(out, fmt.Sprint(ids[:n]))
	}
	return out
}

// A finer scheme than int5 asks for the owner's word.
func TestDefaultUplinksAreCoarse(t *testing.T) {
	want := []string{"tern", "int3", "int4", "nf4", "int5"}
	if got := DefaultPolicy().Uplinks; !slices.Equal(got, want) {
		t.Errorf("uplinks %v, want %v", got, want)
	}
}
