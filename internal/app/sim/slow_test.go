package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/job"
)

// Twenty devices, half of which fetch the base for over six minutes, as 115 MB
// take at 0.3 MB/s: the job begins its rounds with those that are ready, waits for
// nobody else, and loses neither a round nor a device. The base is smaller here, and
// its line slower by as much; the messages of rounds are not, and come at once.
func TestSlowLines(t *testing.T) {
	cfg := config(t, 20)
	cfg.Trainer = slowly{0.02, 20 * time.Second}
	cfg.Coordinator.Job.Rounds = 25
	cfg.Coordinator.Job.Deadlines = job.Default().Deadlines
	cfg.Coordinator.Job.Cohort.MaxAbandoned = 1
	blob, err := cfg.Coordinator.Base.Blob()
	ok(t, err)
	var first time.Duration // when the first round was committed
	b, err := bubble(t, cfg, func(b *bubbled) {
		for _, l := range b.blobs[10:] {
			l.rate = len(blob) / 384
		}
	}, func(_ *bubbled, p monitor.Status) {
		if p.State == monitor.StateCommitted && first == 0 {
			first = p.Elapsed
		}
	})
	ok(t, err)
	got, took := b.co.Result(), b.co.Status().Elapsed
	if got.Rounds != 25 || got.Abandoned != 0 || first > time.Minute {
		t.Errorf("%d rounds, %d abandoned, the first after %v", got.Rounds, got.Abandoned, first)
	}
	if most := 25*20*time.Second + 2*time.Minute; took > most {
		t.Errorf("25 rounds of 20s took %v", took)
	}
	for i, err := range b.errs {
		if err != nil || b.events[i][edge.Committed] == 0 {
			t.Errorf("device %d: %v after %v", i, err, b.events[i])
		}
	}
}

// Of thirty devices ten train at a twentieth of the speed. Where the job declares them, rounds wait for
// three times the training of the others, and else for the slow ones; nobody is excluded for it, and
// slow devices take part in the first rounds, which wait for all.
func TestSlowShare(t *testing.T) {
	const fast, factor = 20 * time.Second, 20
	perRound := map[float64]time.Duration{}
	for share, rounds := range map[float64]int{0: 5, 0.34: 9} {
		cfg := config(t, 30)
		cfg.Coordinator.Job.Rounds = rounds
		cfg.Coordinator.Job.Deadlines = job.Default().Deadlines
		cfg.Coordinator.Job.Deadlines.Collect, cfg.Coordinator.Job.Deadlines.Slow = 10*time.Minute, share
		var at []time.Duration
		b, err := bubble(t, cfg, func(b *bubbled) {
			b.trainer = func(i int) edge.Trainer {
				if i < 10 {
					return slowly{0.02, factor * fast}
				}
				return slowly{0.02, fast}
			}
		}, func(_ *bubbled, p monitor.Status) {
			if p.State == monitor.StateCommitted {
				at = append(at, p.Elapsed)
			}
		})
		ok(t, err)
		if got := b.co.Result(); got.Rounds != rounds || got.Abandoned != 0 {
			t.Errorf("share %v: %d rounds, %d abandoned", share, got.Rounds, got.Abandoned)
		}
		at = slices.Compact(at)
		perRound[share] = (at[len(at)-1] - at[3]) / time.Duration(len(at)-4)
		for i, err := range b.errs {
			if err != nil || b.events[i][edge.Committed] == 0 {
				t.Errorf("share %v: device %d: %v after %v", share, i, err, b.events[i])
			}
		}
	}
	t.Logf("a round takes %v without the share, %v with it", perRound[0], perRound[0.34])
	if perRound[0] < factor*fast || perRound[0.34] > 3*fast+time.Second {
		t.Errorf("a round takes %v without the share, %v with it", perRound[0], perRound[0.34])
	}
}

// Devices that train for long say nothing meanwhile, and hear nothing: no connection
// ends for it, also where a line holds not one byte and both sides ask at once
// whether the other lives.
func TestQuietLines(t *testing.T) {
	cfg := config(t, 4)
	cfg.Trainer = slowly{0.02, 10 * time.Minute}
	cfg.Coordinator.Job.Deadlines = job.Default().Deadlines
	cfg.Coordinator.Job.Deadlines.Collect = 20 * time.Minute
	b, err := bubble(t, cfg, nil, nil)
	ok(t, err)
	for i, err := range b.errs {
		if n := b.events[i][edge.Backoff]; err != nil || n != 0 || b.events[i][edge.Committed] != 3 {
			t.Errorf("device %d: %v, connected again %d times: %v", i, err, n, b.events[i])
		}
	}
}
