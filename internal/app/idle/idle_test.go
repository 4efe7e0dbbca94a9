package idle

import (
	"errors"
	"testing"
	"time"
)

func TestSpans(t *testing.T) {
	at := func(clock string) time.Time {
		t, err := time.Parse("15:04", clock)
		if err != nil {
			panic(err)
		}
		return t
	}
	for text, want := range map[string][2][]string{ // in, out
		"09:00-17:30": {{"09:00", "12:00", "17:29"}, {"08:59", "17:30", "00:00"}},
		"22:00-07:00": {{"22:00", "23:59", "00:00", "06:59"}, {"07:00", "21:59", "12:00"}},
		"0:00-24:00":  {}, "09:00": {}, "9-17": {}, "": {}, "09:00-09:00": {}, "25:00-03:00": {},
	} {
		s, err := ParseSpan(text)
		if (err == nil) != (want[0] != nil) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil {
			continue
		}
		if s.String() != text {
			t.Errorf("%q is %v", text, s)
		}
		for i, clocks := range want {
			for _, clock := range clocks {
				why, err := Rule{Quiet: []Span{s}}.Rests(at(clock))
				if err != nil || (why != "") != (i == 0) {
					t.Errorf("%q at %s: %q, %v", text, clock, why, err)
				}
			}
		}
	}
}

// What cannot be told is not allowed: an owner who asked for mains power must not train on battery.
func TestRests(t *testing.T) {
	unknown := errors.New("no such file")
	says := func(on bool, err error) func() (bool, error) { return func() (bool, error) { return on, err } }
	for _, c := range []struct {
		rule             Rule
		battery, metered bool
		broken           error
		why              string
		fails            bool
	}{
		{rule: Rule{}, battery: true, metered: true, broken: unknown},
		{rule: Rule{Mains: true}, battery: true, why: "on battery"},
		{rule: Rule{Mains: true}, metered: true},
		{rule: Rule{Unmetered: true}, battery: true},
		{rule: Rule{Unmetered: true}, metered: true, why: "on a metered network"},
		{rule: Rule{Mains: true}, broken: unknown, fails: true},
		{rule: Rule{Unmetered: true}, broken: unknown, fails: true},
	} {
		c.rule.machine = machine{says(c.battery, c.broken), says(c.metered, c.broken)}
		if why, err := c.rule.Rests(time.Now()); why != c.why || (err != nil) != c.fails {
			t.Errorf("%+v: %q, %v", c, why, err)
		}
	}
}
