package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// A device whose owner gives less memory than the job's program takes declines every
// round of it. Its operator is told why, by a code alone, and what to do about it; the
// others' rounds go on.
func TestDeclinedForMemory(t *testing.T) {
	t.Parallel()
	s := serves(t, 1, "")
	small := joins(t, t.TempDir(), s.token.String(), "--memory=1")
	for i, done := range honest(t, s, 3) {
		if end := watchdog.Recv(t, "the job's end", done, s.String, small.String); !slices.Contains(end.outcomes, attack.Committed) {
			t.Errorf("device %d: %+v", i, end)
		}
	}
	if code := s.exit(); code != 0 {
		t.Errorf("the coordinator ended with %d: %s", code, s)
	}
	if said := s.String(); !strings.Contains(said, "devices declined the round") || !strings.Contains(said, "(memory)") ||
		!strings.Contains(said, "training.micro_batch") {
		t.Errorf("the operator is told: %s", said)
	}
	if said := small.String(); !strings.Contains(said, "--memory=") {
		t.Errorf("the owner is told: %s", said)
	}
	list := runs(t, "devices", "list", "--dir", s.dir+"/state")
	if code := list.exit(); code != 0 || !declinedForMemory.MatchString(list.out.String()) {
		t.Errorf("%d: %s%s", code, list.out.String(), list)
	}
}

// A device that left says why it cannot take part.
var declinedForMemory = regexp.MustCompile(`(?m)^\S+ +\S+ +left .*memory`)

// What devices say of their own accord reaches neither the operator's terminal nor the
// store as they say it: a code stands for it.
func TestHostileWordsOfDevices(t *testing.T) {
	const evil = "\x1b[2J\x1b]0;owned\x07\u202e\r\nlevel=ERROR msg=forged"
	s := serves(t, 1, "cohort: {population: 6, floor: 3}")
	ctx := watchdog.Context(t)
	for _, code := range []uint64{300, 308, 399} {
		d := attack.NewDevice(s.token)
		join(t, d)
		t.Cleanup(d.Close)
		if err := d.Send(ctx, attack.Ready, attack.Array{}); err != nil {
			t.Fatal(err)
		}
		go func() {
			plan, err := d.Plan(ctx)
			if err != nil {
				return
			}
			m, err := attack.NewMember(d.Identity, d.JobBytes, plan)
			if err != nil {
				return
			}
			if err := d.Send(ctx, attack.Refuse, attack.Array{m.Round(), code, evil}); err != nil {
				return
			}
			_ = d.Send(ctx, attack.Error, attack.Array{uint64(104), evil, uint64(0)})
		}()
	}
	s.outlives(t, honest(t, s, 3))
	said := s.String()
	for _, bad := range []string{"\x1b", "\x07", "\u202e", "\nlevel=ERROR msg=forged"} {
		if strings.Contains(said, bad) {
			t.Errorf("the terminal gets %q: %q", bad, said)
		}
	}
	if !strings.Contains(said, "(memory)") {
		t.Errorf("the operator is not told of the one that is too small: %s", said)
	}
	list := runs(t, "devices", "list", "--dir", s.dir+"/state")
	if code := list.exit(); code != 0 || strings.Contains(list.out.String(), "\x1b") || strings.Count(list.out.String(), "memory (") != 1 {
		t.Errorf("%d: %q%s", code, list.out.String(), list)
	}
}
