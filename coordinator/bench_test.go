package coordinator

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// benchCoordinator has d = 135,168 values in one head: as many as BERT-small's
// adapter at rank 16 with its own.
func benchCoordinator(b *testing.B) *Coordinator {
	j := tinyJob(4)
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 1, Alpha: 1, Sequence: 8, HeadOnly: true}
	j.Labels = nil
	for i := range 4096 {
		j.Labels = append(j.Labels, fmt.Sprint(i))
	}
	c := model.BERT(16, 32, 1, 1, 8)
	var tensors []model.Tensor
	for _, s := range c.BaseTensors() {
		tensors = append(tensors, model.Tensor{Name: s.Name, Shape: s.Shape, Data: make([]float32, model.Elements(s.Shape))})
	}
	base, err := model.NewBase(c, tensors, []byte(`{}`), model.F32)
	if err != nil {
		b.Fatal(err)
	}
	co, err := New(Config{Job: j, Dir: b.TempDir(), Base: base, Hosts: []string{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := co.Close(); err != nil {
			b.Error(err)
		}
	})
	return co
}

// BenchmarkRelease is what a round costs after unmasking: noise from the pool,
// decoding, the optimizer's step, and the transaction on disk.
func BenchmarkRelease(b *testing.B) {
	c := benchCoordinator(b)
	b.ReportMetric(float64(c.core.Layout().Size(0)), "values")
	for b.Loop() {
		b.StopTimer()
		d, err := c.core.Draw(dp.PoissonDrawNumbered(4))
		if err != nil {
			b.Fatal(err)
		}
		sum := make([]int64, d.Size())
		if _, err := c.store.BeginRound(store.Round{Version: c.core.Version(), Certificate: d.Certificate()}); err != nil {
			b.Fatal(err)
		}
		r := &running{Draw: d}
		if err := c.store.PersistIntent(r.Event()); err != nil {
			b.Fatal(err)
		}
		if r.noise, err = dp.NewPool(b.Context(), r.Event().Sigma2, d.Size(), rand.Reader); err != nil {
			b.Fatal(err)
		}
		for r.noise.Ready() < d.Size() {
			time.Sleep(time.Millisecond)
		}
		b.StartTimer()
		event, clip, err := c.core.Release(d, sum, 4, false, r.noise)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.commit(r, event, clip); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		r.noise.Close()
		b.StartTimer()
	}
}

// BenchmarkAssembly is what a masked update costs between socket and
// aggregation: decoding its frame and gathering it.
func BenchmarkAssembly(b *testing.B) {
	size := uint64(135_680 * 11 / 8)
	data := make([]byte, size)
	f, err := wire.Append(nil, &wire.Turn{Round: 1, Number: 2, Payload: data}) // same work as a chunk of that size
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(size))
	defer cputime.Benchmark(b)()
	for b.Loop() {
		m, err := wire.Decode(f, wire.FromDevice)
		if err != nil {
			b.Fatal(err)
		}
		a, err := wire.NewAssembly(1, size)
		if err != nil {
			b.Fatal(err)
		}
		if err := a.Add(&wire.Update{Round: 1, Total: size, Data: m.(*wire.Turn).Payload}); err != nil {
			b.Fatal(err)
		}
	}
}

var enrolledFlag = flag.Int("enrolled", 100_000, "identities that BenchmarkDrawing enrols")

// BenchmarkDrawing is all of a round's draw that grows with the fleet, but for what it asks the
// store: who is in no draw (11 in 1,000) is taken in, of whom 1,000 are others in each round, the
// roll is made, and coins are flipped for a cohort of 1,000, or 1,000 are drawn of 50,000 that
// are there.
func BenchmarkDrawing(b *testing.B) {
	n := *enrolledFlag
	f := fleet.New()
	outs := [2]map[[32]byte]string{{}, {}}
	now := time.Now()
	for i := range n {
		var id [32]byte
		rand.Read(id[:])
		d := f.Add(id)
		if i%100 == 0 || i%1000 == 1 {
			for k := range outs {
				if i >= n/10 && i < n/10+90_000 && i/100%2 == k {
					continue // it has come back
				}
				outs[k][id] = strings.Repeat("garbage", i%100)
			}
		} else if i < 50_000 {
			f.Connect(d, &link.Link{}, nil, now)
			f.NowReady(d)
		}
	}
	f.Muster(outs[0])
	if _, err := f.Roll(); err != nil { // sorts and hashes them once for all draws
		b.Fatal(err)
	}
	round := 0
	for name, draw := range map[string]func() (fleet.Roll, dp.Draw, error){
		"coins": func() (fleet.Roll, dp.Draw, error) { r, err := f.Roll(); return r, dp.PoissonDraw(r.Population), err },
		"fixed": func() (fleet.Roll, dp.Draw, error) {
			r, err := f.There(now, nil)
			return r, dp.FixedDraw(r.Population, 1000), err
		},
	} {
		b.Run(fmt.Sprintf("%s/enrolled=%d", name, n), func(b *testing.B) {
			defer cputime.Benchmark(b)()
			for b.Loop() {
				f.Muster(outs[round%2])
				round++
				roll, coins, drawn := draw()
				who, _, err := coins(1000/float64(n), rand.Reader)
				if err = errors.Join(drawn, err); err != nil || len(who) < 800 || len(who) > 1200 || roll.Len() > f.Active() {
					b.Fatal(len(who), roll.Len(), err)
				}
			}
		})
	}
}
