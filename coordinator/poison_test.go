package coordinator

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// addBehindMask adds x to the packed values at the end of an update: the mask comes
// off in the shard's sum, this does not.
func addBehindMask(update []byte, width int, x []int64) {
	packed := update[len(update)-(len(x)*width+7)/8:]
	for i, v := range x {
		carry, at := uint64(v)&(1<<width-1), i*width
		for b := range width { // bit by bit, as packed values run across bytes
			bit := &packed[(at+b)/8]
			old := uint64(*bit) >> ((at + b) % 8) & 1
			sum := old + carry&1
			*bit = *bit&^(1<<((at+b)%8)) | byte(sum&1)<<((at+b)%8)
			carry = carry>>1 + sum>>1
		}
	}
}

// poisoned plays a round of a job in which device 0 of 64 adds the same size, with the sign
// that moves one bias up, to every symbol; the others send updates of the full
// norm, no two alike. It returns by how many times the largest honest update the
// bias moved.
func poisoned(t *testing.T, edit func(*Job), size func(shard int, q int64) int64) (moved float64, tb *table, dir string) {
	t.Helper()
	const n = 64
	job := loud(n, 1)
	edit(&job)
	dir = t.TempDir()
	var target int
	tb = setTable(t, Config{Job: job, Dir: dir}, n, func(i int, p *player) {
		rnd := rand.New(rand.NewPCG(uint64(i), 9))
		p.delta = func(d int) []float32 {
			x := make([]float32, d)
			for k := range x {
				x[k] = float32(rnd.NormFloat64())
			}
			return x // clipped by the lattice
		}
		if i == 0 {
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				u, ok := m.(*wire.Update)
				if !ok || p.round > 1 {
					return m, false
				}
				e := make([]float32, p.lat.Dim())
				e[target] = float32(p.lat.Clip())
				// Far finer than the lattice, so that every sign shows.
				fine, err := quant.Lookup("fixed32")
				if err != nil {
					t.Error(err)
				}
				l, err := quant.NewLattice(fine, len(e), p.lat.Clip(), p.plan.Rotation)
				if err != nil {
					t.Error(err)
				}
				rotated, err := l.Encode(e, rand.NewChaCha8([32]byte{1}))
				if err != nil {
					t.Error(err)
				}
				x := make([]int64, p.lat.D()+int(p.plan.CountCoordinates))
				for k, v := range rotated {
					x[k] = size(job.Shard.Size, int64(p.lat.MaxSymbol()))
					if v < 0 {
						x[k] = -x[k]
					}
				}
				addBehindMask(u.Data, tb.c.t.Contract.Width, x)
				return u, false
			}
		}
	})
	for _, s := range tb.c.core.Layout().Spans(3) {
		if s.Kind != model.KindA {
			target = s.Offset // starts at zero
		}
	}
	if err := tb.run(); err != nil && tb.ctx.Err() == nil {
		t.Fatal(err)
	}
	return float64(tb.c.Result().Adapter.Slice(3)[target]) * n / job.Privacy.ClipNorm, tb, dir
}

// TestHostilePoison: what one device of 64 can do to one bias, in units of the most
// that an honest device could. docs/PROTOCOL.md, section 12, has the table.
func TestHostilePoison(t *testing.T) {
	oneShard := func(j *Job) { j.Shard.Size = 64 }
	// Each symbol at the end of the sum's range, less what the others fill of it: the
	// range holds, the norm does not. The round is charged, and the poison is not in it.
	got, tb, dir := poisoned(t, oneShard, func(n int, q int64) int64 { return int64(n)*q - 20*q })
	l, err := store.ReadLedger(dir)
	if err != nil || len(l.Entries) != 2 || l.Entries[0].Event.Kind != dp.KindCharged || !strings.Contains(l.Entries[0].Reason, "range") {
		t.Errorf("ledger %+v, %v", l, err)
	}
	if math.Abs(got) > 10 || counted(t, tb.c.metrics.Alarms) != 1 {
		t.Errorf("poison in range moved the bias by %.1f honest updates, %d alarms", got, counted(t, tb.c.metrics.Alarms))
	}
	// As much as the norm of a sum of 64 allows: this is what is left without trimming.
	within := func(n int, q int64) int64 { return int64(float64(n-8) * float64(q) / 2.6) }
	untrimmed, tb, _ := poisoned(t, oneShard, within)
	if counted(t, tb.c.metrics.Alarms) != 0 || untrimmed < 30 {
		t.Errorf("poison within the norm moved the bias by %.1f, %d alarms: the attack is none", untrimmed, counted(t, tb.c.metrics.Alarms))
	}
	// In smaller shards the norm allows less; trimmed, no more than the others' spread.
	small := map[int]float64{}
	for trim := range 2 {
		four := func(j *Job) { j.Shard.Size, j.Shard.Floor, j.Shard.Trim, j.Cohort.Floor = 16, 8, trim, 64 }
		small[trim], tb, dir = poisoned(t, four, func(n int, q int64) int64 { return int64(0.8 * float64(n) * float64(q) / 2.6) })
		if l, err = store.ReadLedger(dir); err != nil || len(l.Entries) != 1 || counted(t, tb.c.metrics.Alarms) != 0 {
			t.Errorf("trimmed by %d: ledger %+v, %v", trim, l, err)
		}
	}
	if small[0] > untrimmed/2 || small[1] > small[0]*0.85 {
		t.Errorf("in four shards it moved by %.1f, trimmed by %.1f, in one shard by %.1f", small[0], small[1], untrimmed)
	}
	t.Logf("one device of 64 moves a bias by %.1f honest updates in one shard, %.1f in four, %.1f in four trimmed by one", untrimmed, small[0], small[1])
}

// TestTrimmedMean: where nobody lies the trimmed sum is of what is left, over what is
// expected of that, at the price of the sum.
func TestTrimmedMean(t *testing.T) {
	const n, v = 12, 0.05
	job := loud(n, 1)
	job.Shard.Size, job.Shard.Floor, job.Shard.Trim, job.Cohort.Floor = 3, 2, 1, 9
	dir := t.TempDir()
	tb := setTable(t, Config{Job: job, Dir: dir}, n, func(_ int, p *player) { p.delta = fixedDelta(v) })
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	if got := moved(tb); math.Abs(got-v) > 0.004 {
		t.Errorf("moved by %v, want %v", got, v)
	}
	vec, err := tb.c.t.Vector(3, job.Privacy.ClipNorm, [32]byte{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := store.ReadLedger(dir)
	if err != nil || len(l.Entries) != 1 || l.Entries[0].Event.B2 != vec.B2() {
		t.Errorf("a trimmed release is charged as %+v, %v", l.Entries, err)
	}
}

// TestTrimNeedsShards: devices that go before shards are cut leave too few of them:
// the round is given up before anybody is asked for anything, and costs nothing.
func TestTrimNeedsShards(t *testing.T) {
	const n = 12
	job := loud(n, 1)
	job.Shard.Size, job.Shard.Floor, job.Shard.Trim, job.Cohort.Floor = 3, 2, 1, 9
	dir := t.TempDir()
	err := bubbleWith(t, Config{Job: job, Dir: dir}, n, func(ctx context.Context, tb *table) {
		var wg sync.WaitGroup
		for i, p := range tb.players {
			p.delta = fixedDelta(0.05)
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				if turn == 1 && p.round == 1 && i >= 6 {
					return &wire.Refuse{Round: 1, Code: wire.CodeData}, false
				}
				return m, false
			}
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		if res := tb.c.Result(); res.Rounds != 1 || res.Abandoned != 1 || math.Abs(moved(tb)-0.05) > 0.004 {
			t.Errorf("%d rounds, %d abandoned, moved by %v", res.Rounds, res.Abandoned, moved(tb))
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if l, err := store.ReadLedger(dir); err != nil || len(l.Entries) != 1 {
		t.Errorf("%d entries, %v: too few shards cost nothing", len(l.Entries), err)
	}
}
