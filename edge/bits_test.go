package edge

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// What one example can show falls with the square of own noise times groups, whatever the job's size,
// and the rounds that a coordinator may call lost count.
func TestBitsAboutOneExample(t *testing.T) {
	for _, c := range []struct {
		own    float64
		groups uint32
		want   float64 // a round
	}{{0.1, 0, 72.13}, {0.1, 1, 72.13}, {0.1, 4, 4.508}, {0.1, 16, 0.2818}, {0.5, 4, 0.1803}} {
		a, err := NewAccount(nil, nil)
		ok(t, err)
		j := &job{Job: wire.Job{Rounds: 20, Groups: c.groups, Privacy: wire.Privacy{Private: true, NoiseMultiplier: 1, Delta: 1e-6, OwnNoise: c.own}}}
		for round := range uint64(3) {
			ok(t, a.begin(j, round+1, 100, time.Now()))
			ok(t, a.contribute(j, new(Policy), traffic{}))
		}
		of := a.Jobs()[0]
		got, bounded := of.ExampleBits()
		if !bounded || math.Abs(got/(3*c.want)-1) > 1e-3 {
			t.Errorf("own noise %v in %d groups: three rounds tell %v bits, want %v", c.own, c.groups, got, 3*c.want)
		}
		if all, _ := of.Bits(); math.Abs(all/(3/(2*c.own*c.own*math.Ln2))-1) > 1e-9 {
			t.Errorf("groups change what all data can show: %v bits", all)
		}
	}
	j := wire.Job{Rounds: 23, Groups: 16, Privacy: wire.Privacy{OwnNoise: 0.1}} // and five that may be called lost
	if got := new(Policy).mostShown(&j, Shown{}); !strings.Contains(got, "at most 7.89 bits about any one example") || !strings.Contains(got, "about 8 characters") {
		t.Errorf("an owner is told %q", got)
	}
	if j.Privacy.OwnNoise = 0; !strings.Contains(new(Policy).mostShown(&j, Shown{}), "honesty") {
		t.Errorf("without own noise an owner is told %q", new(Policy).mostShown(&j, Shown{}))
	}
}

// Rounds without noise of the device's own are counted apart: the account says that nothing bounds them, and jobs with noise are
// held to the limits all the same.
func TestRoundsWithoutOwnNoiseAreUnbounded(t *testing.T) {
	a, err := NewAccount(nil, nil)
	ok(t, err)
	noisy := &job{Job: wire.Job{Rounds: 20, Groups: 16, Privacy: wire.Privacy{Private: true, NoiseMultiplier: 1, Delta: 1e-6, OwnNoise: 0.1}}, task: [32]byte{1}}
	central := &job{Job: wire.Job{Rounds: 20, Privacy: wire.Privacy{Private: true, NoiseMultiplier: 1, Delta: 1e-6}}, task: [32]byte{2}}
	for _, j := range []*job{noisy, central} {
		for round := range uint64(3) {
			ok(t, a.begin(j, round+1, 100, time.Now()))
			ok(t, a.contribute(j, new(Policy), traffic{}))
		}
	}
	s := a.Shown()
	if s.Unbounded != 3 || math.Abs(s.Example/(3*0.2818)-1) > 1e-3 {
		t.Errorf("%+v", s)
	}
	if but := a.shownElsewhere(central.task); but.Unbounded != 0 || but.Example != s.Example {
		t.Errorf("but for the job itself: %+v", but)
	}
	p := DefaultPolicy()
	if err := a.affordBits(&noisy.Job, &p); err != nil {
		t.Errorf("a job with noise: %v", err)
	}
	if told := p.mostShown(&noisy.Job, s); !strings.Contains(told, "nothing bounds what 3 rounds of other jobs told") {
		t.Errorf("an owner is told %q", told)
	}
}
