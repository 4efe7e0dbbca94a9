package store

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestSummary: devices are counted by what they call themselves and by when they were seen, each once.
func TestSummary(t *testing.T) {
	dir := folder(t)
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	s, err := Open(dir, Options{Task: "t", Now: func() time.Time { return now }})
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	f, err := OpenFleet(dir)
	ok(t, err)
	t.Cleanup(func() { ok(t, f.Close()) })
	f.now = func() time.Time { return now }
	enrol := func(i byte, ago time.Duration, said string) {
		at := now
		now = now.Add(-ago)
		_, err := s.Enrol([32]byte{i}, 0)
		ok(t, err)
		now = at
		if said != "" {
			ok(t, s.Agent([32]byte{i}, said))
		}
	}
	enrol(1, time.Hour, "starling/1.0 linux/amd64 wazero")
	enrol(2, 3*time.Hour, "starling/1.0 linux/amd64 wazero")
	enrol(3, 48*time.Hour, "starling/0.9 darwin/arm64 wazero")
	enrol(4, 20*24*time.Hour, "starling v8")
	enrol(5, 90*24*time.Hour, "") // of before it was kept
	ok(t, s.Agent([32]byte{2}, "starling/1.1 linux/amd64 wazero"))
	if _, err := f.Forget(fmt.Sprintf("%x", [32]byte{5})); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Ban(fmt.Sprintf("%x", [32]byte{3}), ""); err != nil {
		t.Fatal(err)
	}
	got, err := f.Summary()
	ok(t, err)
	want := Summary{Enrolled: 5, Excluded: 1,
		Programs:  []Group{{"starling", 1}, {"starling/0.9", 1}, {"starling/1.0", 1}, {"starling/1.1", 1}, {"unknown", 1}},
		Platforms: []Group{{"linux/amd64", 2}, {"browser", 1}, {"darwin/arm64", 1}, {"unknown", 1}},
		Seen:      []Group{{"within 2 hours", 1}, {"within a day", 1}, {"within a week", 1}, {"within 30 days", 1}, {"longer ago", 0}, {"forgotten", 1}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if err := s.Agent([32]byte{1}, strings.Repeat("x", MaxAgent+1)); err == nil {
		t.Error("an agent of any length is kept")
	}
	// What strangers call themselves has no end; what is shown of it has.
	for i := range byte(40) {
		enrol(100+i, 0, fmt.Sprintf("program-%d x/%d", i, i))
	}
	got, err = f.Summary()
	ok(t, err)
	for _, groups := range [][]Group{got.Programs, got.Platforms} {
		n := 0
		for _, g := range groups {
			n += g.Devices
		}
		if len(groups) != MaxGroups || groups[MaxGroups-1].Name != "others" || n != 45 {
			t.Errorf("%d groups of %d devices: %+v", len(groups), n, groups)
		}
	}
}

// TestPause: the operators' word holds over restarts until it is taken back, and each is an act.
func TestPause(t *testing.T) {
	f, _ := hands(t)
	if p, err := f.Paused(); p != nil || err != nil {
		t.Errorf("a new job is paused: %+v, %v", p, err)
	}
	if err := f.Resume(); !errors.Is(err, ErrRequest) {
		t.Errorf("a job that goes on is resumed: %v", err)
	}
	ok(t, f.As("Ada").Pause("a new phone"))
	if p, err := f.Paused(); err != nil || p == nil || *p != (Pause{"Ada", "a new phone"}) {
		t.Errorf("%+v, %v", p, err)
	}
	if err := f.Pause(strings.Repeat("x", MaxNote+1)); !errors.Is(err, ErrRequest) {
		t.Errorf("a reason of any length: %v", err)
	}
	ok(t, f.Resume())
	if p, err := f.Paused(); p != nil || err != nil {
		t.Errorf("a resumed job is paused: %+v, %v", p, err)
	}
	acts, _, err := f.Acts()
	ok(t, err)
	if len(acts) != 2 || acts[0].Act != "pause job" || acts[0].By != "Ada" || acts[1].Act != "resume job" || acts[1].By != ByFolder {
		t.Errorf("acts %+v", acts)
	}
}
