package commands

import (
	"fmt"
	"strings"
	"testing"

	"github.com/starling-fl/starling/lab/sweep"
)

// --slow says what rounds take with slow devices as the job is and as it could be, and whether the
// simulation leaves them out.
func TestSlowSimulated(t *testing.T) {
	for _, c := range []struct {
		text, keys, says string
		left             bool
	}{
		{"0.34:20:10s", "privacy: none", "train for 3m20s and wait for all of them; this job cannot go on without them: job: deadlines.slow is 0.34", false},
		{"0.34:20:10s", "shard: {semi_honest: true}", "with deadlines.slow: 0.34 for at most 30s", false},
		{"0.34:20:10s", "shard: {semi_honest: true}\ndeadlines: {slow: 0.34}", "at most 30s (deadlines.slow: 0.34), 3m20s without it", true},
		{"0.34:20:10s", "deadlines: {slow: 0.34}", "coordinators refuse this job", true},
		{"0.34:20", "privacy: none", "5m0s, the deadline", true},
		{"0.1:20:10s", "privacy: none", "30s, the deadline", true},
		{"0.34:2.5", "privacy: none", "train for 50s and wait for all", false},
	} {
		var f slowness
		if err := f.Set(c.text); err != nil {
			t.Fatal(err)
		}
		s := sweep.DefaultSettings()
		s.Population, s.SamplingRate, s.Cohort = 30, 1, 0
		for _, line := range strings.Split(c.keys, "\n") {
			group, value, _ := strings.Cut(line, ": ")
			var key any
			if key = value; value != "none" {
				name, of, _ := strings.Cut(strings.Trim(value, "{}"), ": ")
				group += "." + name
				key = of == "true"
				if of != "true" {
					key = 0.34
				}
			}
			var err error
			if s, err = s.With(group, key); err != nil {
				t.Fatal(err)
			}
		}
		late, err := f.in(&s)
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		late.say(func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) })
		if !strings.Contains(said.String(), c.says) || (s.Slow > 0) != c.left {
			t.Errorf("%s with %s: left out %v\n%s", c.text, c.keys, s.Slow, &said)
		}
	}
	for _, text := range []string{"", "0.5:2", "0.3", "0.3:0.5", "0.3:2:x", "nan:2", "0.3:nan", "0.3:20:0s"} {
		if err := new(slowness).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
