package timing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/job"
)

// TestHostileHaste: devices that answer at once, as many as may be, cannot make a
// deadline under which more than the unawaited share of the honest ones would fall, whatever
// those need; and as many that are silent, or slow, cannot make one longer than
// three times what the rest need.
func TestHostileHaste(t *testing.T) {
	for _, slow := range []float64{0, 0.34} {
		t.Run(fmt.Sprint(slow), func(t *testing.T) { hostileHaste(t, job.Deadlines{Slow: slow}.Unawaited) })
	}
}

func hostileHaste(t *testing.T, unawaited func(int) int) {
	const least, own, size = 10 * time.Second, time.Hour, 100
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 2000 {
		n := 3 + r.IntN(200)
		liars := r.IntN(n)
		honest := make([]time.Duration, n-liars)
		for i := range honest {
			honest[i] = time.Duration(r.ExpFloat64() * float64(5*time.Minute))
		}
		slices.Sort(honest)
		tenth := unawaited(n)
		fast, slow := Pace{Unawaited: unawaited}, Pace{Unawaited: unawaited}
		for range paceRounds {
			a := Answers{After: slices.Clone(honest)}
			for range liars {
				a.After = append(a.After, 0)
			}
			fast.Note(round.Collecting, &a, own, size)
			b := Answers{After: slices.Clone(honest), Silent: r.IntN(tenth + 1)}
			for range min(liars, tenth-b.Silent) {
				b.After = append(b.After, own)
			}
			if m := len(b.After) + b.Silent; m < 3 || unawaited(m) < tenth && tenth > 1 {
				continue // the liars are more than a tenth of those who came
			}
			slow.Note(round.Collecting, &b, own, size)
		}
		limit := fast.Limit(round.Collecting, least, own, size)
		cut := 0
		for _, t := range honest {
			if t > limit {
				cut++
			}
		}
		if cut > tenth {
			t.Fatalf("trial %d: %d of %d honest devices beside %d hasty ones would be cut off at %v", trial, cut, len(honest), liars, limit)
		}
		if most := max(least, job.PaceFactor*honest[len(honest)-1]); slow.Limit(round.Collecting, least, own, size) > min(own, most) && len(slow.last[round.Collecting]) >= paceRounds {
			t.Fatalf("trial %d: %v, though honest devices need %v", trial, slow.Limit(round.Collecting, least, own, size), honest[len(honest)-1])
		}
	}
}

// TestPace: the job's deadline holds until enough was seen, and again as soon as
// more than a tenth are silent; a larger vector has as much longer.
func TestPace(t *testing.T) {
	p := Pace{Unawaited: job.Deadlines{}.Unawaited}
	all := func(d time.Duration, silent int) *Answers {
		return &Answers{After: slices.Repeat([]time.Duration{d}, 10-silent), Silent: silent}
	}
	is := func(size int, want time.Duration) {
		t.Helper()
		if got := p.Limit(round.Collecting, 10*time.Second, 5*time.Minute, size); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	for range paceRounds {
		is(100, 5*time.Minute)
		p.Note(round.Collecting, all(20*time.Second, 0), 5*time.Minute, 100)
	}
	is(100, time.Minute)
	is(50, time.Minute)
	is(200, 2*time.Minute)
	is(2000, 5*time.Minute)
	p.Note(round.Collecting, all(20*time.Second, 1), 5*time.Minute, 100)
	is(100, time.Minute)
	p.Note(round.Collecting, all(20*time.Second, 2), 5*time.Minute, 100)
	is(100, 5*time.Minute)
	for range paceWindow {
		p.Note(round.Collecting, all(time.Second, 0), 5*time.Minute, 100)
	}
	is(100, 10*time.Second)
}
