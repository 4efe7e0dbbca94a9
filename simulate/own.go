package simulate

import (
	"fmt"
	"sync"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
)

// mostOwn is the most samples of clients' own noise that are drawn one by one in a round,
// each client's from its own stream, as a fleet over sockets draws them: half a minute of
// one processor. In a larger round their sum is drawn as one discrete Gaussian. The two
// laws differ in no probability by more than dp.SumRatio, below 2e-16 from two grid units on.
const mostOwn = 1 << 27

// draw begins the next round. One of which too few clients arrive for the noise that is
// counted on is charged, and releases nothing, as in the service; the next is drawn.
func (r *Run) draw() (*core.Draw, error) {
	for range r.job.Cohort.MaxAbandoned {
		d, err := r.core.Draw(r.apart())
		if err != nil || len(d.Cohort()) < r.job.Cohort.Floor || r.core.Enough(r.devices(d), r.job.Cohort.Population) {
			return d, err
		}
		event := d.Event()
		event.Kind = dp.KindCharged
		r.events = append(r.events, event)
	}
	return nil, fmt.Errorf("%w: dropout %v and slow %v leave fewer than %d devices in %d rounds in a row, whose own noise is counted on: lower them, or cohort.floor",
		ErrConfig, r.cfg.Dropout, r.cfg.Slow, r.core.Own().Min, r.job.Cohort.MaxAbandoned)
}

// devices is how many of the drawn clients' updates arrive. One without an example sends
// zeros, and its noise.
func (r *Run) devices(d *core.Draw) int {
	n := len(d.Cohort())
	if r.cfg.Dropout > 0 || r.slow != nil {
		for _, member := range d.Cohort() {
			if r.drops(d.ID(), r.order(member)) {
				n--
			}
		}
	}
	return n
}

// addOwn adds what the clients add themselves.
func (r *Run) addOwn(d *core.Draw, sum []int64) error {
	n := r.devices(d)
	if r.roll == nil || n*len(sum) > mostOwn {
		all, err := d.Own().Times(uint64(n))
		if err != nil {
			return err
		}
		return dp.NewSampler(r.core.OwnNoise(d)).AddNoise(sum, all)
	}
	members := make(chan int)
	var mu sync.Mutex // of sum and failed
	var failed error
	var wg sync.WaitGroup
	for range r.cfg.Workers {
		wg.Go(func() {
			mine := make([]int64, len(sum))
			var err error
			for member := range members {
				if err == nil {
					seed, _ := edge.Reproducible(r.cfg.Seed, member)
					err = edge.OwnNoise(seed, d.ID()).AddNoise(mine, d.Own())
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			}
			for i, x := range mine {
				sum[i] += x
			}
		})
	}
	for _, member := range d.Cohort() {
		if n := r.order(member); !r.drops(d.ID(), n) {
			members <- n
		}
	}
	close(members)
	wg.Wait()
	return failed
}
