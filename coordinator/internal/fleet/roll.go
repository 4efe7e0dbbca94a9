package fleet

import (
	"bytes"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/dp"
)

// Roll lists devices in the order of their identities, so that a draw from a seed does not depend on the order of
// enrolment. It is valid until the fleet changes.
type Roll struct {
	dp.Population
	runs   []*run
	starts []int // the index of each run's first device
}

// Who returns the device at index i.
func (r Roll) Who(i int) round.Device {
	at, is := slices.BinarySearch(r.starts, i)
	if !is {
		at--
	}
	return r.runs[at].members[i-r.starts[at]].n
}

// run holds the devices whose identities begin alike, one after another in memory: looking up
// ten million devices one by one would take most of a draw's time.
type run struct {
	members []member // sorted: those in draws first, each in the order of their identities
	in      int      // in draws
	sum     dp.Run   // of them, where there are any
	changed bool     // since it was sorted
}

type member struct {
	id [32]byte
	n  round.Device
}

// beginning is the prefix of an identity that chooses its run.
type beginning [dp.RunBytes]byte

func beginningOf(id [32]byte) beginning { return beginning(id[:dp.RunBytes]) }

// runs holds devices in the order of their identities.
type runs struct {
	by      map[beginning]*run
	ordered []*run
}

func (r *runs) of(id [32]byte) *run { return r.by[beginningOf(id)] }

// add puts a device into its run.
func (r *runs) add(d *Device) {
	in := r.of(d.ID)
	if in == nil {
		in = &run{}
		r.by[beginningOf(d.ID)] = in
		r.ordered = append(r.ordered, in)
	}
	in.members = append(in.members, member{d.ID, d.N})
	in.changed = true
}

// roll sorts the runs that have changed, and returns the Roll of all runs.
func (r *runs) roll(out func(round.Device) bool) (Roll, error) {
	for _, in := range r.ordered {
		if in.changed {
			if err := in.sort(out); err != nil {
				return Roll{}, err
			}
		}
	}
	// Any member of a run decides: all of its identities begin alike, and no other run's do.
	slices.SortFunc(r.ordered, func(a, b *run) int { return bytes.Compare(a.members[0].id[:], b.members[0].id[:]) })
	var roll Roll
	var sums []dp.Run
	n := 0
	for _, in := range r.ordered {
		if in.in > 0 {
			roll.runs, roll.starts, sums = append(roll.runs, in), append(roll.starts, n), append(sums, in.sum)
			n += in.in
		}
	}
	var err error
	roll.Population, err = dp.Runs(sums)
	return roll, err
}

func (in *run) sort(out func(round.Device) bool) error {
	slices.SortFunc(in.members, func(a, b member) int { return bytes.Compare(a.id[:], b.id[:]) })
	keys := make([][]byte, 0, len(in.members))
	var others []member
	at := 0
	for _, m := range in.members {
		if out(m.n) {
			others = append(others, m)
			continue
		}
		in.members[at] = m
		at++
	}
	copy(in.members[at:], others)
	in.in, in.changed = at, false
	for i := range in.members[:at] {
		keys = append(keys, in.members[i].id[:])
	}
	var err error
	if at > 0 {
		in.sum, err = dp.NewRun(keys)
	}
	return err
}

// Roll returns all devices that may be drawn. Its cost follows the changes since the last call, and the number of
// runs.
func (f *Fleet) Roll() (Roll, error) {
	return f.runs.roll(func(n round.Device) bool { return f.all[n].Out })
}

// There returns the devices that could be assigned now and may be drawn, in the order of their identities, but for
// those for which except returns true; except may be nil.
func (f *Fleet) There(now time.Time, except func(*Device) bool) (Roll, error) {
	there := runs{by: map[beginning]*run{}}
	for d := range f.ready {
		if !d.Out && d.There(now) && (except == nil || !except(d)) {
			there.add(d)
		}
	}
	return there.roll(func(round.Device) bool { return false })
}

// RollBut is Roll without the devices for which except returns true.
func (f *Fleet) RollBut(except func(*Device) bool) (Roll, error) {
	some := runs{by: map[beginning]*run{}}
	for _, d := range f.all {
		if !d.Out && !except(d) {
			some.add(d)
		}
	}
	return some.roll(func(round.Device) bool { return false })
}
