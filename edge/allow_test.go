package edge

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/training"
)

// What a strict policy refuses of a job is listed limit by limit, and a policy
// that allows each of them takes the job: no more than that.
func TestBeyondIsWhatAllowNeeds(t *testing.T) {
	j := &wire.Job{RankMax: 64, Announced: training.Announced{Batch: 128}, Rounds: 20_000, Uplink: "fixed16", ShardFloor: 3, SemiHonest: true}
	p := DefaultPolicy()
	err := fmt.Errorf("edge: joining: %w", p.checkJob(j, Shown{}))
	if !errors.Is(err, ErrPolicy) {
		t.Fatal(err)
	}
	var keys []string
	for _, l := range PolicyErrors(err) {
		keys = append(keys, l.Key)
		if l.What == "" || l.Why == "" || l.Want == "" {
			t.Errorf("%s says too little: %+v", l.Key, l)
		}
		if err := p.Allow(l.Key, l.Have); err != nil {
			t.Errorf("%s: %v", l.Key, err)
		}
	}
	want := []string{"batch", "bits", "breach_bits", "corrupt", "example_bits", "own_noise", "rank", "rounds", "semi_honest", "shard", "unlogged", "uplinks"}
	if slices.Sort(keys); !slices.Equal(keys, want) {
		t.Errorf("beyond the policy: %q, want %q", keys, want)
	}
	if err := p.checkJob(j, Shown{}); err != nil {
		t.Errorf("what was allowed is refused: %v", err)
	}
	j.Rounds++
	if p.checkJob(j, Shown{}) == nil {
		t.Error("more rounds than were allowed are taken")
	}
	plan := p.checkPlan(j, &wire.Plan{Steps: 1000, ClipNorm: 1})
	refused := &RefusalError{Round: 1, Cause: ErrPlan, Err: plan}
	if l := PolicyErrors(refused); len(l) != 1 || l[0].Key != "steps" || p.Allow("steps", l[0].Have) != nil || p.Steps != 1000 {
		t.Errorf("a plan's steps: %+v", l)
	}
	if d := DefaultPolicy(); slices.Contains(d.Uplinks, "fixed16") {
		t.Error("the default policy was widened")
	}
}

func TestBeyondOfOtherErrors(t *testing.T) {
	for _, err := range []error{nil, ErrData, errors.Join(ErrJob, ErrSecret)} {
		if l := PolicyErrors(err); len(l) != 0 {
			t.Errorf("%v: %+v", err, l)
		}
	}
	l := PolicyErrors(fmt.Errorf("joining: %w", ErrNotPrivate))
	if len(l) != 1 {
		t.Fatalf("a job that is not private: %+v", l)
	}
	var cfg Config
	if err := cfg.Allow(l[0].Key, l[0].Have); err != nil || !cfg.AcceptNotPrivate {
		t.Errorf("it cannot be accepted: %v", err)
	}
}

// Hostile: what a page stores can be bent; nothing but a limit is widened by it.
func TestHostileAllow(t *testing.T) {
	for _, c := range [][2]string{
		{"shard", "1"}, {"shard", "x"}, {"shard", ""}, {"corrupt", "-1"}, {"corrupt", "NaN"}, {"clip_norm", "0"}, {"work", "-3"},
		{"programs", "00"}, {"peers", ""}, {"uplink", "any"}, {"uplinks", "any"}, {"", ""}, {"steps", "99999999999999999999"}, {"semi_honest", "maybe"},
	} {
		p := DefaultPolicy()
		if err := p.Allow(c[0], c[1]); !errors.Is(err, ErrConfig) {
			t.Errorf("%s = %q: %v", c[0], c[1], err)
		}
	}
	p := DefaultPolicy()
	if err := p.Allow("clip_norm", "Inf"); err != nil || !math.IsInf(p.ClipNorm, 1) {
		t.Errorf("no limit at all, which a policy file can say too: %v", err)
	}
}
