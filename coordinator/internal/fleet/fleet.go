// Package fleet holds the enrolled devices: which may be drawn, which are connected, how long
// an absent one is waited for, and each one's strikes.
//
// A Fleet belongs to one goroutine. It has no clock, no store and no connection of its own:
// anyone who holds it says what has happened, and when. What it remembers of presence decides
// whom a round waits for, never who is drawn or what a round costs.
package fleet

import (
	"iter"
	"maps"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/round"
)

// Device is an enrolled identity.
type Device struct {
	ID      [32]byte
	N       round.Device
	Link    *link.Link // nil: not connected
	Token   []byte     // of the last session
	Browser bool       // its last session came from a browser
	Holds   int64      // keys of the log whose head it was sent last, in its session
	Out     bool       // in no draw: excluded, not seen for long, or left
	Left    int        // how often it left the population in this process
	Standing
	Presence
}

// Standing records a device's strikes.
type Standing struct {
	Excluded bool
	Why      string // it is excluded
	Strikes  int    // rounds that it spoiled
}

// Presence remembers, across sessions, whether a drawn device that is absent is worth waiting for.
type Presence struct {
	Ready  bool      // in this session: it can be assigned
	Was    bool      // it was ready at some time in this process
	Joined time.Time // when the session began
	Gone   time.Time // when the last session ended; zero: it had none in this process
	BackBy time.Time // when it was told to be back, where it was told to hang up; else zero
	Missed int       // rounds in a row that it was connected in and silent
	// Overdue counts those of them in which the job's own deadline passed, not one that follows the fleet.
	Overdue int
	Told    int       // devices that had enrolled, when it was told last whom the first round awaits
	Rests   time.Time // until when it is taken into no round because of that
}

// There reports whether a device could be assigned now.
func (d *Device) There(now time.Time) bool { return d.Ready && !now.Before(d.Rests) }

// Works records that a device has sent its update: it is not silent.
func (d *Device) Works() { d.Missed, d.Overdue = 0, 0 }

// Fleet holds a job's devices. Its counts are kept up to date, because there may be a million.
type Fleet struct {
	byID      map[[32]byte]*Device
	all       []*Device            // by round.Device
	runs      runs                 // of all
	out       map[[32]byte]*Device // in no draw
	connected int
	ready     map[*Device]struct{} // of the connected: that can be assigned
	resting   map[*Device]struct{} // that rested when last looked at
}

// New returns an empty Fleet.
func New() *Fleet {
	return &Fleet{byID: map[[32]byte]*Device{}, runs: runs{by: map[beginning]*run{}}, out: map[[32]byte]*Device{}, ready: map[*Device]struct{}{}, resting: map[*Device]struct{}{}}
}

// Add enrols an identity, which may be drawn.
func (f *Fleet) Add(id [32]byte) *Device {
	d := &Device{ID: id, N: round.Device(len(f.all))}
	f.byID[id] = d
	f.all = append(f.all, d)
	f.runs.add(d)
	return d
}

// Of is the device of an identity, nil where it is not enrolled; At is that of a number.
func (f *Fleet) Of(id [32]byte) *Device    { return f.byID[id] }
func (f *Fleet) At(n round.Device) *Device { return f.all[n] }

// All are the devices in the order of their numbers; the slice is the fleet's.
func (f *Fleet) All() []*Device { return f.all }

// Enrolled counts all, Active those that may be drawn, Connected those that have a session,
// and Ready those of them that can be assigned.
func (f *Fleet) Enrolled() int  { return len(f.all) }
func (f *Fleet) Active() int    { return len(f.all) - len(f.out) }
func (f *Fleet) Connected() int { return f.connected }
func (f *Fleet) Ready() int     { return len(f.ready) }

// Available is how many devices could be assigned now: those that are ready, but for
// those that rest.
func (f *Fleet) Available(now time.Time) int {
	n := len(f.ready)
	for d := range f.resting {
		switch {
		case !now.Before(d.Rests):
			delete(f.resting, d)
		case d.Ready:
			n--
		}
	}
	return n
}

// AvailableBut is Available without those of which except says so.
func (f *Fleet) AvailableBut(now time.Time, except func(*Device) bool) int {
	n := 0
	for d := range f.ready {
		if d.There(now) && !except(d) {
			n++
		}
	}
	return n
}

// Connect begins a session of a device that has none.
func (f *Fleet) Connect(d *Device, l *link.Link, token []byte, now time.Time) {
	d.Link, d.Token, d.Joined, d.BackBy = l, token, now, time.Time{}
	f.connected++
}

// Disconnect ends the session of a device that has one.
func (f *Fleet) Disconnect(d *Device, now time.Time) {
	f.Unready(d)
	d.Link.Abandon()
	d.Link, d.Gone = nil, now
	f.connected--
}

// NowReady notes that a device can be assigned; false where it has said so before.
func (f *Fleet) NowReady(d *Device) bool {
	if d.Ready {
		return false
	}
	d.Ready, d.Was = true, true
	f.ready[d] = struct{}{}
	return true
}

// Resting is how many connected devices rested when [Fleet.Available] was asked last: they are too slow, or hang.
func (f *Fleet) Resting() int {
	n := 0
	for d := range f.resting {
		if d.Link != nil {
			n++
		}
	}
	return n
}

// Unready notes that a device cannot be assigned until it says that it can.
func (f *Fleet) Unready(d *Device) {
	d.Ready = false
	delete(f.ready, d)
}

// maxRests bounds the rest of a device that is silent in every round: it is taken
// into one of 64.
const maxRests = 6

// Silent notes that a device that was there let a round of about that pace pass without a
// word; overdue says that the job's own deadline passed. It is absent until it says that it
// is ready, and rests longer each time that this happens in a row: it hangs, or is too
// slow for the job.
func (f *Fleet) Silent(d *Device, overdue bool, pace time.Duration, now time.Time) {
	f.Unready(d)
	if overdue {
		d.Overdue++
	}
	if d.Missed++; d.Missed > 1 {
		f.Rest(d, now.Add(pace*time.Duration(1<<min(d.Missed-1, maxRests)-1)))
	}
}

// Rest takes a device into no round until then.
func (f *Fleet) Rest(d *Device, until time.Time) {
	d.Rests = until
	f.resting[d] = struct{}{}
}

// Exclude takes a device out of the draws and records why.
func (f *Fleet) Exclude(d *Device, why string) {
	d.Excluded, d.Why = true, why
	f.absent(d, true)
}

func (f *Fleet) absent(d *Device, is bool) {
	if d.Out != is {
		f.runs.of(d.ID).changed = true
	}
	if d.Out = is; is {
		f.out[d.ID] = d
	} else {
		delete(f.out, d.ID)
	}
}

// Pardon clears a device's strikes; Muster says whether it is drawn.
func (f *Fleet) Pardon(d *Device) {
	d.Standing = Standing{}
	d.Works()
}

// Muster sets which devices are out of the draws: out has the reason for each excluded one, "" for one that has
// not been seen for long. A connected one counts as seen.
func (f *Fleet) Muster(out map[[32]byte]string) {
	for id, d := range f.out {
		if why, is := out[id]; !is || why == "" && d.Link != nil {
			f.absent(d, false)
		}
	}
	for id, why := range out {
		if _, is := f.out[id]; is { // as most: among millions, to look up devices takes long
			continue
		}
		if d := f.byID[id]; d != nil {
			f.absent(d, why != "" || d.Link == nil)
		}
	}
}

// Outside returns the devices that are in no draw, in no order.
func (f *Fleet) Outside() iter.Seq[*Device] { return maps.Values(f.out) }
