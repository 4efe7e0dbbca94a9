package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/quant"
)

// wide is a base with a large head, so that one release has 100,000 noised
// coordinates.
func wide(t *testing.T, job *Job, labels int) *model.Base {
	t.Helper()
	c := model.BERT(16, 24, 1, 1, 8)
	var tensors []model.Tensor
	for _, s := range c.BaseTensors() {
		tensors = append(tensors, model.Tensor{Name: s.Name, Shape: s.Shape, Data: make([]float32, model.Elements(s.Shape))})
	}
	b, err := model.NewBase(c, tensors, []byte(`{}`), model.F32)
	if err != nil {
		t.Fatal(err)
	}
	job.Adapter.HeadOnly = true
	job.Labels = nil
	for i := range labels {
		job.Labels = append(job.Labels, fmt.Sprint("class ", i))
	}
	return b
}

// TestNoiseOnTheWholePath: with every device sending zeros, what the coordinator
// releases is discrete Gaussian noise of the variance that the ledger states,
// over the fixed denominator, whatever the unit of privacy and with a clipping
// count in the same draw. Chi-square over 100,000 coordinates; the variance of
// the sum of squares is 2/d, so 4.9 standard deviations, 1.1% of sigma, reject a
// right implementation once in a million runs.
func TestNoiseOnTheWholePath(t *testing.T) {
	const n = 3
	for name, c := range map[string]struct {
		edit        func(*Job)
		denominator float64
	}{
		"devices": {func(*Job) {}, n},
		"providers, adaptive": {func(j *Job) {
			j.Providers = job.Providers{Max: 6, Expected: 4, SamplingRate: 0.5}
			j.Clipping.Adaptive = true
		}, n * 4 * 0.5},
	} {
		j := tinyJob(n)
		j.Rounds = 1
		c.edit(&j)
		base := wide(t, &j, 4000)
		dir := t.TempDir()
		tb := setTable(t, Config{Job: j, Base: base, Dir: dir}, n, nil)
		// Stochastic rounding of zeros is zero: 0 is a symbol.
		if err := tb.run(); err != nil {
			t.Fatal(err)
		}
		l, err := store.ReadLedger(dir)
		if err != nil || len(l.Entries) != 1 {
			t.Fatal(err)
		}
		ev := l.Entries[0].Event
		v, err := tb.c.t.Vector(0, j.Privacy.ClipNorm, [32]byte{})
		if err != nil {
			t.Fatal(err)
		}
		// One grid unit of the sum, in units of the released mean; the rotation is
		// orthonormal and keeps the sum of squares up to the padding's share.
		unit := unitOf(t, v.Lattice, c.denominator)
		values := tb.c.Result().Adapter.Slice(0)
		var squares float64
		for _, x := range values {
			squares += float64(x) * float64(x)
		}
		d := float64(len(values))
		got := squares / (unit * unit * ev.Sigma2.Float()) / d
		if d < 99_000 || math.Abs(got-1) > 4.9*math.Sqrt(2/d) {
			t.Errorf("%s: variance over %v coordinates is %v of the ledger's", name, d, got)
		}
		if want := ev.NoiseMultiplier * ev.NoiseMultiplier * float64(v.B2()); math.Abs(ev.Sigma2.Float()/want-1) > 1e-6 || ev.B2 != v.B2() {
			t.Errorf("%s: the ledger's variance %v is not z^2*B2 = %v", name, ev.Sigma2.Float(), want)
		}
		if int(ev.Dim) != v.Size() || ev.Certificate == [32]byte{} || ev.SamplingRate != 1 {
			t.Errorf("%s: event %+v", name, ev)
		}
		if j.Clipping.Adaptive != (v.B2() > v.Lattice.B2()) || (j.Providers.Max > 0) != (ev.ProviderRate == 0.5) {
			t.Errorf("%s: squared sensitivity %d of which the update's is %d, provider rate %v", name, v.B2(), v.Lattice.B2(), ev.ProviderRate)
		}
	}
}

// unitOf is what one grid unit of the sum is worth in the decoded mean, found
// from the lattice's own decoding of a single unit.
func unitOf(t *testing.T, l *quant.Lattice, n float64) float64 {
	t.Helper()
	sum := make([]int64, l.D())
	sum[0] = 1 << 20
	mean, err := l.DecodeMean(sum, n)
	if err != nil {
		t.Fatal(err)
	}
	// A unit vector's image has norm 1, less what falls on padding: taken over
	// many coordinates.
	var squares float64
	for _, x := range mean {
		squares += float64(x) * float64(x)
	}
	return math.Sqrt(squares*float64(l.D())/float64(l.Dim())) / (1 << 20)
}

// TestSimulatedNoise: a simulated cohort scales the noise and changes the
// guarantee the budget applies to; both are recorded, and labelled.
func TestSimulatedNoise(t *testing.T) {
	job := tinyJob(4)
	job.Rounds = 1
	job.Privacy.SimulatedPopulation, job.Privacy.SimulatedCohort = 1_000_000, 10_000
	dir := t.TempDir()
	tb := setTable(t, Config{Job: job, Dir: dir}, 4, nil)
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	l, err := store.ReadLedger(dir)
	if err != nil || len(l.Entries) != 1 {
		t.Fatal(err)
	}
	e := l.Entries[0]
	if e.Event.NoiseScale != 4.0/10_000 || e.Event.SimulatedRate != 0.01 {
		t.Errorf("event %+v", e.Event)
	}
	if e.Simulated == nil || !e.Simulated.Simulated || e.Simulated.Epsilon > job.Privacy.Epsilon || e.Simulated.Delta != dp.DefaultDelta(1_000_000) {
		t.Errorf("simulated %v", e.Simulated)
	}
	if e.Delivered == nil || e.Delivered.Simulated || e.Delivered.Epsilon < 1000 {
		t.Errorf("delivered %v: almost no noise was added", e.Delivered)
	}
	ck, err := model.ReadCheckpoint(tb.c.Result().Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"simulated for a population of 1000000", "delivered to the population of 4", l.HeadString()} {
		if !strings.Contains(ck.Privacy, says) {
			t.Errorf("the checkpoint says %q, not %q", ck.Privacy, says)
		}
	}
}

// TestReproducible: a seeded run repeats bit for bit, whoever enrols first, and
// claims nothing.
func TestReproducible(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, 32)
	var runs [][]byte
	var keys []*player
	for run := range 2 {
		dir := t.TempDir()
		job := tinyJob(4)
		job.Rounds = 2
		tb := setTable(t, Config{Job: job, Dir: dir, Seed: seed}, 4, func(i int, p *player) {
			if run == 1 {
				p.key = keys[3-i].key
			}
		})
		keys = tb.players
		if err := tb.run(); err != nil {
			t.Fatal(err)
		}
		res := tb.c.Result()
		if res.Private || res.Delivered != nil || res.Simulated != nil {
			t.Errorf("a seeded run claims %+v", res)
		}
		b, err := model.EncodeAdapter(res.Adapter)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, b)
		if l, err := store.ReadLedger(dir); err != nil || l.Private || l.Entries[0].Delivered != nil {
			t.Errorf("ledger private %v, %v", l.Private, err)
		}
		ck, err := model.ReadCheckpoint(res.Checkpoint)
		if err != nil || !strings.Contains(ck.Privacy, "not private") {
			t.Errorf("checkpoint says %q, %v", ck.Privacy, err)
		}
		for _, p := range tb.players {
			if p.job.Privacy.Private {
				t.Error("devices are told that the run is private")
			}
		}
	}
	if !bytes.Equal(runs[0], runs[1]) {
		t.Error("two runs with one seed differ")
	}
	job := tinyJob(4)
	a := setTable(t, Config{Job: job}, 4, nil)
	b := setTable(t, Config{Job: job}, 4, nil)
	if a.c.core.Seed() == b.c.core.Seed() || bytes.Equal(a.c.authority, b.c.authority) || a.c.task == b.c.task {
		t.Error("two secret runs share randomness")
	}
	for _, tb := range []*table{a, b} {
		tb.server.Close()
		if err := tb.c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSampling: with coins, only who is drawn is asked; the ledger and the
// certificate say how; nobody joins the round by reconnecting.
func TestSampling(t *testing.T) {
	const n = 20
	job := tinyJob(n)
	job.Rounds = 5
	job.Cohort.SamplingRate, job.Cohort.Floor = 0.8, 3 // all drawn every time: once in 10^9 runs
	job.Cohort.Quorum = n                              // who is not there is drawn and not asked
	dir := t.TempDir()
	tb := setTable(t, Config{Job: job, Dir: dir}, n, nil)
	if tb.c.t.Units != 0.8*n {
		t.Errorf("denominator %v, want 16", tb.c.t.Units)
	}
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	drawn := map[uint64]int{}
	for _, p := range tb.players {
		for _, plan := range p.plans {
			drawn[plan.Round]++
		}
	}
	l, err := store.ReadLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, e := range l.Entries {
		if e.Event.SamplingRate != 0.8 || e.Delivered.Sampling != dp.SamplingPoisson ||
			e.Visible == nil || e.Visible.Epsilon < e.Delivered.Epsilon {
			t.Errorf("entry %+v", e)
		}
		all += drawn[e.Event.Round]
	}
	if len(l.Entries) != 5 || all == 5*n || all < 5*n/2 {
		t.Errorf("%d entries, %d of %d asked", len(l.Entries), all, 5*n)
	}
	if counted(t, tb.c.metrics.Drawn) != int64(all) {
		t.Errorf("%d drawn, %d asked", counted(t, tb.c.metrics.Drawn), all)
	}
}

// TestDownlink: round 1 is a seed; afterwards the plan names a slice by content,
// and a device that holds the last one gets there by a shorter way.
func TestDownlink(t *testing.T) {
	const n = 3
	// The first slice can be reached from the seed, whatever ranks are drawn.
	for _, format := range []string{"bf16", "nf4"} {
		job := loud(n, 4)
		job.Adapter.RankMin = 2
		job.Wire.Downlink, job.Wire.DownlinkCodec = format, "zstd"
		base := wide(t, &job, 200)
		job.Adapter.HeadOnly = false
		var mu sync.Mutex
		var held [][]float32 // by rank of the plan, what the device decoded
		patched := 0
		var tb *table
		tb = setTable(t, Config{Job: job, Base: base}, n, func(i int, p *player) {
			p.delta = fixedDelta(0.0005)
			if i != 0 {
				return
			}
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				if turn != 1 {
					return m, false
				}
				mu.Lock()
				defer mu.Unlock()
				start := decodeSlice(t, tb, p, &patched, held)
				held = append(held, start)
				return m, false
			}
		})
		if err := tb.run(); err != nil {
			t.Fatal(err)
		}
		if len(held) != 4 || patched == 0 {
			t.Errorf("%s: %d slices, %d by difference", format, len(held), patched)
		}
	}
}

// decodeSlice fetches what a plan starts from, in every way it offers, and checks
// that all ways lead to the same values.
func decodeSlice(t *testing.T, tb *table, p *player, patched *int, held [][]float32) []float32 {
	t.Helper()
	plan := p.plan
	layout := tb.c.t.Layout
	if seed, ok := plan.AdapterSeed(); ok {
		if plan.Version != 0 {
			t.Errorf("a seed in step %d", plan.Version)
		}
		return model.NewAdapter(layout, seed).Slice(tb.c.t.Method.RMax)
	}
	full, err := p.fetch(plan.Slice.Blob)
	if err != nil {
		t.Fatal(err)
	}
	start, err := quant.UnpackUpdate(full, nil, int(plan.Values))
	if err != nil || quant.Digest(start) != plan.Slice.Digest {
		t.Fatalf("slice of step %d: %v", plan.Version, err)
	}
	for _, patch := range p.patches {
		msg, err := p.fetch(patch.Blob)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range held {
			rank := 0
			for layout.Size(rank) != len(h) {
				rank++
			}
			if rank < int(plan.Rank) {
				continue
			}
			a := model.NewAdapter(layout, 0)
			if err := a.SetSlice(rank, h); err != nil {
				t.Fatal(err)
			}
			cut := a.Slice(int(plan.Rank))
			if quant.Digest(cut) != patch.From {
				continue
			}
			got, err := quant.UnpackUpdate(msg, cut, int(plan.Values))
			if err != nil || quant.Digest(got) != plan.Slice.Digest || len(msg) >= len(full) {
				t.Errorf("difference of %d bytes to a slice of %d: %v", len(msg), len(full), err)
			}
			*patched++
		}
	}
	return start
}

// scores is an evaluator that likes one rank best.
type scores struct {
	mu    sync.Mutex
	calls [][]int
	err   error
}

func (s *scores) Evaluate(_ context.Context, a *model.Adapter, ranks []int) ([]metric.Score, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, ranks)
	out := make([]metric.Score, len(ranks))
	for i, r := range ranks {
		out[i] = metric.Score{Accuracy: 1 - math.Abs(float64(r)-2)/10, Loss: float64(r) / 2}
		if r == 3 {
			out[i].Loss = math.NaN() // a diverged one breaks no status
		}
	}
	return out, s.err
}

// TestEvaluation: the released adapter is measured beside the rounds and at the
// end, the best rank is chosen on validation data, and the checkpoint says so.
func TestEvaluation(t *testing.T) {
	s, live := &scores{}, &scores{}
	var log bytes.Buffer
	tb := setTable(t, Config{Job: tinyJob(3), Evaluator: s, Live: live, Log: slog.New(slog.NewTextHandler(&log, nil))}, 3, nil)
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	res := tb.c.Result()
	if res.BestRank != 2 || len(res.Validation) != 3 || res.Validation[1] != (metric.RankAccuracy{Rank: 2, Accuracy: 1, Loss: 1}) || res.Validation[2].Loss != 0 {
		t.Errorf("result %+v", res)
	}
	// Nothing is measured twice: the last of the two rounds at the end alone.
	if len(s.calls) != 1 || !slices.Equal(s.calls[0], []int{1, 2, 3}) || len(live.calls) != 1 || len(live.calls[0]) != 1 {
		t.Errorf("calls at the end %v, beside the rounds %v", s.calls, live.calls)
	}
	ck, err := model.ReadCheckpoint(res.Checkpoint)
	if err != nil || ck.BestRank != 2 || ck.RankAccuracy["2"] != 1 || ck.Version != 2 || ck.Seq != 8 {
		t.Errorf("checkpoint %+v, %v", ck.CheckpointInfo, err)
	}
	if !strings.Contains(log.String(), "committed") {
		t.Errorf("log: %s", log.String())
	}
	s = &scores{err: errors.New("no data")}
	tb = setTable(t, Config{Job: tinyJob(3), Evaluator: s}, 3, nil)
	if err := tb.run(); !errors.Is(err, s.err) {
		t.Errorf("a failing evaluation: %v", err)
	}
}
