package edge

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Moment records how much a data set had contributed to a job at a point in time.
type Moment struct {
	At     int64  `json:"at"`     // seconds since 1970
	Rounds uint64 `json:"rounds"` // in which an update was handed over
	Up     int64  `json:"up"`     // bytes sent
	Down   int64  `json:"down"`   // bytes received
}

// traffic counts the bytes that a run's connections have moved.
type traffic struct{ up, down int64 }

func (e *events) traffic() traffic { return traffic{e.up.Load(), e.down.Load()} }

// mostMoments bounds a job's history. When it is full every second moment is dropped, so that it
// can describe a job of any length.
const mostMoments = 64

// note adds to a job's bytes what this run has moved since the last time, and a moment to its
// history; a.mu is held. Each job has connections of its own.
func (a *Account) note(of *JobAccount, moved traffic, now time.Time) {
	before := a.moved[of]
	of.Up += max(0, moved.up-before.up)
	of.Down += max(0, moved.down-before.down)
	if a.moved == nil {
		a.moved = map[*JobAccount]traffic{}
	}
	a.moved[of] = moved
	at := Moment{At: now.Unix(), Rounds: of.Contributed, Up: of.Up, Down: of.Down}
	if n := len(of.History); n > 0 && of.History[n-1].Rounds == at.Rounds {
		of.History[n-1] = at
		return
	}
	of.History = append(thinned(of.History), at)
}

// thinned makes room for one more moment.
func thinned(h []Moment) []Moment {
	if len(h) < mostMoments {
		return h
	}
	kept := h[:0]
	for i, m := range h {
		if i%2 == 0 {
			kept = append(kept, m)
		}
	}
	return kept
}

// mergeHistory is what two histories of one job come to together: at each moment of either,
// the sum of what each had come to.
func mergeHistory(a, b []Moment) []Moment {
	var all []Moment
	var i, k int
	var ofA, ofB Moment
	for i < len(a) || k < len(b) {
		if k == len(b) || i < len(a) && cmp.Compare(a[i].At, b[k].At) <= 0 {
			ofA = a[i]
			i++
		} else {
			ofB = b[k]
			k++
		}
		all = append(all, Moment{At: max(ofA.At, ofB.At), Rounds: ofA.Rounds + ofB.Rounds, Up: ofA.Up + ofB.Up, Down: ofA.Down + ofB.Down})
	}
	for len(all) > mostMoments {
		all = slices.Clone(thinned(all))
	}
	return all
}

// Bits bounds, in bits, the information about the data in all contributions if everybody else lied: it counts only
// the noise that this device added itself. ok is false if it added none; then there is no bound.
func (j *JobAccount) Bits() (bits float64, ok bool) {
	if j.Contributed == 0 || !(j.Own > 0) || j.ProviderRate > 0 && j.Units == 0 {
		return 0, false
	}
	return float64(j.Contributed) * roundBits(j.Own, j.Units), true
}

// Forget removes the readable record of a job, given by the first digits of its TaskID or its whole
// name: what it is called, when it got what, how many bytes, and what was tried before it. What
// protects the data stays, under the job's hash: how many rounds were promised and made, and at
// what noise. Without that a coordinator could make its owner forget and ask for all of its rounds
// once more, and the total epsilon would be smaller than what was spent.
func (a *Account) Forget(which string) (JobAccount, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []string
	for task, j := range a.state.Jobs {
		if which != "" && !j.Forgotten && (j.Name == which || len(which) >= 8 && len(which) <= len(task) && task[:len(which)] == which) {
			found = append(found, task)
		}
	}
	if len(found) != 1 {
		return JobAccount{}, fmt.Errorf("%w: %d jobs are called %.80q or have an id of these first digits, 8 at least", ErrConfig, len(found), which)
	}
	of := a.state.Jobs[found[0]]
	was := *of
	was.Task = found[0]
	of.Name, of.Last, of.Up, of.Down, of.History, of.Starts, of.Forgotten = "", 0, 0, 0, nil, nil, true
	delete(a.state.Leaks, found[0])
	return was, a.keep()
}
