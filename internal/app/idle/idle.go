// Package idle says when a device may work for others: on mains power, on a network that is not metered, outside of
// hours that its owner keeps for themselves. All of it is independent of the owner's data, so a device that
// stays away for these reasons tells nothing of the data.
//
//	rule := idle.Rule{Mains: true}
//	why, err := rule.Rests(time.Now()) // "on battery", or "" if the device may work
package idle

import (
	"fmt"
	"strings"
	"time"
)

// Rule is when a device may work. The zero Rule allows it always.
type Rule struct {
	Mains     bool   // not on battery; a machine without a battery is on mains
	Unmetered bool   // not on a network whose traffic is billed or limited
	Quiet     []Span // hours of the day, local time, in which it may not

	machine machine // of tests; the zero value asks this machine
}

// machine is what a Rule asks. Either function may be nil: then this machine is asked.
type machine struct {
	battery, metered func() (bool, error)
}

// Always reports whether the rule allows work at any time.
func (r Rule) Always() bool { return !r.Mains && !r.Unmetered && len(r.Quiet) == 0 }

// Rests returns why the device may not work at a time, and "" if it may. The error says that this machine does not
// tell what the rule asks about; work is not allowed then.
func (r Rule) Rests(at time.Time) (why string, err error) {
	for _, s := range r.Quiet {
		if s.holds(at) {
			return "quiet hours " + s.String(), nil
		}
	}
	battery, metered := onBattery, onMetered
	if r.machine.battery != nil {
		battery = r.machine.battery
	}
	if r.machine.metered != nil {
		metered = r.machine.metered
	}
	if r.Mains {
		if on, err := battery(); err != nil {
			return "", fmt.Errorf("whether this machine is on mains power cannot be told: %w", err)
		} else if on {
			return "on battery", nil
		}
	}
	if r.Unmetered {
		if on, err := metered(); err != nil {
			return "", fmt.Errorf("whether this network is metered cannot be told: %w", err)
		} else if on {
			return "on a metered network", nil
		}
	}
	return "", nil
}

// Span is a time of day, from and until in minutes after midnight. One that ends before it begins holds overnight.
type Span struct{ from, until int }

// ParseSpan reads a span as people write it: "22:00-07:00".
func ParseSpan(text string) (Span, error) {
	from, until, ok := strings.Cut(text, "-")
	a, okA := minute(from)
	b, okB := minute(until)
	if !ok || !okA || !okB || a == b {
		return Span{}, fmt.Errorf("%q is no time of day: want two different times such as 09:00-17:30", text)
	}
	return Span{a, b}, nil
}

func minute(text string) (of int, ok bool) {
	t, err := time.Parse("15:04", strings.TrimSpace(text))
	return t.Hour()*60 + t.Minute(), err == nil
}

func (s Span) holds(at time.Time) bool {
	m := at.Hour()*60 + at.Minute()
	if s.from < s.until {
		return s.from <= m && m < s.until
	}
	return m >= s.from || m < s.until
}

func (s Span) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", s.from/60, s.from%60, s.until/60, s.until%60)
}
