package round

import (
	"fmt"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/leaf/cputime"
)

// BenchmarkRound drives a whole round, each device answering each turn alone, as
// they do: the time of an event must not grow with the cohort.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("devices=%d", n), func(b *testing.B) {
			cfg := Config{Floor: 1, Enough: 0.9, Grace: time.Second}
			for i := range n {
				cfg.Cohort = append(cfg.Cohort, Device(i))
			}
			for s := range cfg.Limits {
				cfg.Limits[s] = Limit{Timeout: time.Second, Quorum: 1}
			}
			defer cputime.Benchmark(b)()
			for b.Loop() {
				m, err := New(cfg)
				if err != nil {
					b.Fatal(err)
				}
				queue := []Event{Start{}}
				play := func(ev Event) {
					for queue = append(queue, ev); len(queue) > 0; {
						next := queue[0]
						queue = queue[1:]
						for _, e := range m.Take(next) {
							switch e := e.(type) {
							case Cut:
								var s Sharded
								for at := 0; at < len(e.Devices); at += 64 {
									part := e.Devices[at:min(at+64, len(e.Devices))]
									s.Shards = append(s.Shards, Shard{part, len(part)/2 + 1})
								}
								queue = append(queue, s)
							case PersistSurvivors:
								queue = append(queue, Stored{e.Shard})
							case PersistIntent:
								queue = append(queue, Stored{Whole})
							case Release:
								queue = append(queue, Released{})
							}
						}
					}
				}
				for turn := Gathering; turn <= Unmasking; turn++ {
					for _, d := range cfg.Cohort {
						play(Received{d, turn})
					}
				}
				if m.State() != Done {
					b.Fatal(m.State())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(6*n), "ns/event")
		})
	}
}
