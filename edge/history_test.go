//go:build !js

package edge

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

// A job's history tells of all of it, however long it lasts, in so many moments at most, and
// its bytes are those of this job alone.
func TestHistoryIsBounded(t *testing.T) {
	var kept []byte
	a, err := NewAccount(nil, func(b []byte) error { kept = b; return nil })
	ok(t, err)
	j := &job{task: [32]byte{1}}
	j.Name, j.Job.Rounds = "long", 5000
	of := a.of(j)
	begin := time.Unix(1_800_000_000, 0)
	for i := range int64(5000) {
		of.Contributed++
		a.note(of, traffic{10 * (i + 1), 100 * (i + 1)}, begin.Add(time.Duration(i)*time.Minute))
		if n := len(of.History); n == 0 || n > mostMoments {
			t.Fatalf("%d moments after %d rounds", n, i+1)
		}
	}
	first, last := of.History[0], of.History[len(of.History)-1]
	if first.Rounds != 1 || last != (Moment{At: begin.Add(4999 * time.Minute).Unix(), Rounds: 5000, Up: 50_000, Down: 500_000}) {
		t.Errorf("from %+v to %+v", first, last)
	}
	for i, m := range of.History[1:] {
		if before := of.History[i]; m.At <= before.At || m.Rounds <= before.Rounds || m.Up <= before.Up {
			t.Errorf("moment %d: %+v after %+v", i+1, m, before)
		}
	}
	// A further run of the same account begins to count anew.
	ok(t, a.keep())
	b, err := NewAccount(kept, func(b []byte) error { kept = b; return nil })
	ok(t, err)
	ok(t, b.contribute(j, new(Policy), traffic{7, 70}))
	if got := b.Jobs()[0]; got.Up != 50_007 || got.Down != 500_070 || got.Contributed != 5001 {
		t.Errorf("after another run %d up, %d down, %d rounds", got.Up, got.Down, got.Contributed)
	}
}

// Two histories of one job come to the sum of both at each moment.
func TestHistoriesMerge(t *testing.T) {
	a := []Moment{{At: 10, Rounds: 1, Up: 5, Down: 50}, {At: 30, Rounds: 2, Up: 10, Down: 100}}
	b := []Moment{{At: 20, Rounds: 4, Up: 1, Down: 1}, {At: 30, Rounds: 5, Up: 2, Down: 2}}
	want := []Moment{{10, 1, 5, 50}, {20, 5, 6, 51}, {30, 6, 11, 101}, {30, 7, 12, 102}}
	got := mergeHistory(a, b)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("moment %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// What is forgotten tells of no job, and protects as before: the coordinator cannot ask for
// its rounds again, and the total still counts them.
func TestForgettingGivesNothingAway(t *testing.T) {
	const name = "a job of whispers"
	var kept []byte
	a, err := NewAccount(nil, func(b []byte) error { kept = b; return nil })
	ok(t, err)
	j := &job{task: [32]byte{9, 8, 7}}
	j.Name, j.Job.Rounds = name, 2
	j.Privacy.Private, j.Privacy.NoiseMultiplier, j.Privacy.Delta, j.Privacy.OwnNoise = true, 2, 1e-6, 0.5
	for round := range uint64(2) {
		ok(t, a.begin(j, round+1, 100, time.Now()))
		ok(t, a.contribute(j, new(Policy), traffic{1, 2}))
		ok(t, a.committed(j, traffic{1, 2}))
	}
	before, err := a.Spent()
	ok(t, err)
	was := a.Jobs()[0]
	if bits, bounded := was.Bits(); !bounded || math.Abs(bits-2/(2*0.25*math.Ln2)) > 1e-9 {
		t.Errorf("bits %v, %v", bits, bounded)
	}
	for _, which := range []string{"", "a job", "0908", "09080701", strings.Repeat("0", 100)} {
		if _, err := a.Forget(which); err == nil {
			t.Errorf("forgot %q", which)
		}
	}
	gone, err := a.Forget("09080700")
	ok(t, err)
	if gone.Name != name || gone.Task != was.Task {
		t.Errorf("forgot %+v", gone)
	}
	if bytes.Contains(kept, []byte("whispers")) || bytes.Contains(kept, []byte("history")) || bytes.Contains(kept, []byte(`"last": 1`)) {
		t.Errorf("it is still told: %s", kept)
	}
	if _, err := a.Forget(was.Task); err == nil {
		t.Error("forgot it twice")
	}
	again, err := NewAccount(kept, func(b []byte) error { kept = b; return nil })
	ok(t, err)
	if err := again.begin(j, 1, 100, time.Now()); err == nil {
		t.Error("a round is answered again")
	}
	if err := again.begin(j, 3, 100, time.Now()); err == nil {
		t.Error("a third round of two is answered")
	}
	after, err := again.Spent()
	ok(t, err)
	if after.Devices == nil || before.Devices == nil || after.Devices.Epsilon != before.Devices.Epsilon {
		t.Errorf("spent %+v, before %+v", after.Devices, before.Devices)
	}
}

// What one of two copies has of a job that the other has forgotten is told by its name again.
func TestForgottenInOneCopyAlone(t *testing.T) {
	j := &job{task: [32]byte{3}}
	j.Name, j.Job.Rounds = "kept elsewhere", 9
	a, b := a2(t), a2(t)
	for _, of := range []*Account{a, b} {
		ok(t, of.begin(j, 1, 100, time.Now()))
		ok(t, of.contribute(j, new(Policy), traffic{1, 2}))
	}
	_, err := a.Forget(j.Name)
	ok(t, err)
	ok(t, a.Merge(b))
	if got := a.Jobs()[0]; got.Name != j.Name || got.Forgotten || got.Contributed != 2 {
		t.Errorf("%+v", got)
	}
}

// Who was shown a job's history keeps what it was: rounds go on meanwhile.
func TestHistoryIsACopy(t *testing.T) {
	j, a := &job{task: [32]byte{4}}, a2(t)
	j.Job.Rounds = 9
	ok(t, a.contribute(j, new(Policy), traffic{1, 2}))
	shown := a.Jobs()[0].History
	ok(t, a.committed(j, traffic{3, 4}))
	if shown[0].Up != 1 {
		t.Errorf("it changed to %+v", shown[0])
	}
}

func FuzzAccountHistory(f *testing.F) {
	f.Add([]byte(`{"version":1,"jobs":{"ab":{"name":"x","history":[{"at":1,"rounds":1,"up":1,"down":1}]}},"begun":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := NewAccount(b, nil)
		if err != nil {
			return
		}
		for _, j := range a.Jobs() {
			if len(j.History) > mostMoments {
				t.Fatalf("%d moments", len(j.History))
			}
			j.Bits()
		}
		ok(t, a.Merge(a2(t)))
	})
}

func a2(t *testing.T) *Account {
	t.Helper()
	a, err := NewAccount(nil, nil)
	ok(t, err)
	return a
}
