package monitor

import (
	"errors"
	"reflect"
	"testing"

	"github.com/starling-fl/starling/model/evaluate/metric"
)

// shelf keeps records in memory, by round; the numbers of rounds ascend.
type shelf struct {
	order []uint64
	lines map[uint64][]byte
}

func (s *shelf) Remember(round uint64, line []byte) error {
	if s.lines == nil {
		s.lines = map[uint64][]byte{}
	}
	if s.lines[round] == nil {
		s.order = append(s.order, round)
	}
	s.lines[round] = line
	return nil
}

func (s *shelf) History() (lines [][]byte, err error) {
	for _, n := range s.order {
		lines = append(lines, s.lines[n])
	}
	return lines, nil
}

func recalled(t *testing.T, h History) *Monitor {
	t.Helper()
	m := New(nil)
	if err := m.Recall(h); err != nil {
		t.Fatal(err)
	}
	return m
}

func over(n uint64, version int) RoundRecord {
	return RoundRecord{RoundID: RoundID{Round: n, Version: version}, Released: true, Ended: int64(1000 * n)}
}

// TestBytesBelongToTheirRound: each round has what crossed the sockets since the one
// before, the job has all of it, and a later process counts on from there.
func TestBytesBelongToTheirRound(t *testing.T) {
	var kept shelf
	m := recalled(t, &kept)
	move := func(m *Monitor, updates, rest int) {
		m.Meter().Up(updates + rest)
		m.Meter().For(PartUpdates, int64(updates), 0)
	}
	move(m, 100, 7)
	if got := m.Ended(over(1, 1)); got != (Traffic{BytesUp: 107}) {
		t.Errorf("the first round moved %+v", got)
	}
	move(m, 30, 0)
	if got := m.Ended(over(2, 2)); got != (Traffic{BytesUp: 30}) {
		t.Errorf("the second round moved %+v", got)
	}
	if s := m.Publish(Overview{}, Result{}, 10, true); s.BytesUp != 137 || s.Parts.Updates.Up != 130 || s.Parts.Rest.Up != 7 {
		t.Errorf("the job moved %+v", s.Parts)
	}
	if r := m.Result(); r.BytesUp != 137 || r.BytesUpPerDeviceRound != 13.7 {
		t.Errorf("the run moved %+v", r)
	}

	later := recalled(t, &kept)
	if !reflect.DeepEqual(withoutSum(later.Rounds()), withoutSum(m.Rounds())) {
		t.Errorf("recalled\n%+v\nof\n%+v", later.Rounds(), m.Rounds())
	}
	move(later, 3, 0)
	if s := later.Publish(Overview{}, Result{}, 14, true); s.BytesUp != 140 || later.Result().BytesUp != 140 || later.Result().BytesUpPerDeviceRound != 10 || !later.Whole() {
		t.Errorf("after a restart the job has %+v, its result %+v", s.Traffic, later.Result())
	}
}

func withoutSum(all []RoundRecord) []RoundRecord {
	for i := range all {
		all[i].soFar = Parts{}
	}
	return all
}

// TestNews: a follower is told of a round when it is over, and again when it is measured,
// and of nothing twice; there are at most 16.
func TestNews(t *testing.T) {
	m := recalled(t, &shelf{})
	f := m.Follow()
	rounds := func() (numbers []uint64) {
		n, _ := f.News()
		for _, r := range n.Rounds {
			numbers = append(numbers, r.Round)
		}
		return numbers
	}
	m.Ended(over(1, 1))
	m.Ended(over(2, 2))
	if got := rounds(); !reflect.DeepEqual(got, []uint64{1, 2}) {
		t.Errorf("told of %v", got)
	}
	_, changed := f.News()
	m.Measure(1, []metric.RankAccuracy{{Rank: 8, Accuracy: 0.5}})
	select {
	case <-changed:
	default:
		t.Error("nobody was woken")
	}
	if got := rounds(); !reflect.DeepEqual(got, []uint64{1}) || m.Rounds()[0].Accuracy[0].Accuracy != 0.5 {
		t.Errorf("after the measurement told of %v", got)
	}
	if got := rounds(); got != nil {
		t.Errorf("told of %v again", got)
	}

	all := []*Follower{f}
	for next := m.Follow(); next != nil; next = m.Follow() {
		all = append(all, next)
	}
	if len(all) != maxWatchers || !m.Watched() {
		t.Errorf("%d follow", len(all))
	}
	for _, f := range all {
		f.Close()
	}
	if m.Watched() {
		t.Error("somebody follows who has left")
	}
}

// TestRecordsAreBounded: of more rounds than are shown the last are, and none twice.
func TestRecordsAreBounded(t *testing.T) {
	m := recalled(t, &shelf{})
	f := m.Follow()
	for n := range uint64(maxRecords + 3) {
		m.Ended(over(n+1, int(n)+1))
	}
	all := m.Rounds()
	if len(all) != maxRecords || all[0].Round != 4 || m.LastEnded().Unix() != 1000*(maxRecords+3) {
		t.Errorf("%d rounds, the first is %d", len(all), all[0].Round)
	}
	if n, _ := f.News(); len(n.Rounds) != maxRecords {
		t.Errorf("told of %d", len(n.Rounds))
	}
}

// TestPublic: while a round runs everybody sees the job as it was before, and that there
// is one.
func TestPublic(t *testing.T) {
	m := recalled(t, &shelf{})
	shows := func(state string, version int, settled bool, want PublicStatus) {
		t.Helper()
		s := Status{PublicStatus: PublicStatus{State: state, RoundID: RoundID{Version: version}}, Enrolled: 5}
		m.Publish(Overview{Status: s}, Result{}, 0, settled)
		if got := m.PublicStatus(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got := m.Status(); got.State != state || got.Version != version || got.Enrolled != 5 {
			t.Errorf("the operator sees %+v", got)
		}
	}
	shows(StateWaiting, 1, true, PublicStatus{State: StateWaiting, RoundID: RoundID{Version: 1}})
	shows("collecting", 2, false, PublicStatus{State: StateRunning, RoundID: RoundID{Version: 1}})
	shows(StateCommitted, 2, true, PublicStatus{State: StateCommitted, RoundID: RoundID{Version: 2}})
}

// broken remembers nothing.
type broken struct{ shelf }

func (*broken) Remember(uint64, []byte) error { return errors.New("no room") }

// TestNotRemembered: a round that cannot be remembered is shown all the same, and said.
func TestNotRemembered(t *testing.T) {
	m := recalled(t, &broken{})
	m.Ended(over(1, 1))
	if lines, _ := m.lines.after(0); len(lines) != 1 || lines[0].Level != "ERROR" || len(m.Rounds()) != 1 {
		t.Errorf("said %v, shown %v", lines, m.Rounds())
	}
}
