package timing

import "time"

// Alarm wakes anyone who waits on its channel. It is set anew only where the time has changed: setting it
// costs more than handling most events.
type Alarm struct {
	set   time.Time
	timer *time.Timer
}

// At is the channel that yields at t; none where t is zero. It holds until the next call.
func (a *Alarm) At(t time.Time) <-chan time.Time {
	switch {
	case t.IsZero():
		return nil
	case a.timer == nil:
		a.timer = time.NewTimer(time.Until(t))
	case !t.Equal(a.set):
		a.timer.Reset(time.Until(t))
	}
	a.set = t
	return a.timer.C
}

// Rang says that the channel has yielded.
func (a *Alarm) Rang() { a.set = time.Time{} }
