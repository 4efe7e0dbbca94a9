package job

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A declared share of slow devices is refused where rounds cannot lack it, by its key and limit, and what
// the refusal recommends passes.
func TestSlowShares(t *testing.T) {
	for _, c := range []struct{ slow, cohort, rest, refusal string }{
		{"0.1", "population: 30", "", ""},
		{"0.23", "population: 30", "", ""},
		{"0.34", "population: 30", "", "at most 7 may be slow; lower it to 0.23, or set shard.semi_honest: true"},
		{"0.34", "population: 30", "shard: {semi_honest: true}", ""},
		{"0.34", "population: 30", "shard: {corrupt: 0, breach_bits: 0}", ""},
		{"0.34", "population: 30, floor: 20", "privacy: {noise: devices}\nshard: {semi_honest: true, floor: 16}", ""},
		{"0.34", "population: 30, floor: 25", "privacy: {noise: devices}\nshard: {semi_honest: true, floor: 16}", "20 of 30 devices are left, and a release needs 25 (cohort.floor"},
		{"0.3", "population: 1000", "", "lower it to 0."},
		{"0.1", "population: 1000", "", ""},
		{"0.1", "population: 100000, sampling_rate: 0.01", "", ""},
		{"0.3", "population: 100000, sampling_rate: 0.01", "", "must be at most 0.1 where coins choose"},
		{"0.1", "population: 100000, sampling_rate: 0.01, dropout: 0.05", "", "above cohort.dropout = 0.05"},
		{"0.5", "population: 30", "", "must be in [0, 0.5)"},
		{"-0.1", "population: 30", "", "must be in [0, 0.5)"},
		{"0.3", "population: 40, sampling: fixed, size: 30", "", "at most 7 may be slow"},
		{"0.3", "population: 40, sampling: fixed, size: 30", "shard: {semi_honest: true}", ""},
	} {
		text := fmt.Sprintf("name: x\nlabels: [a, b]\ndeadlines: {slow: %s}\ncohort: {%s}\n%s\n", c.slow, c.cohort, c.rest)
		_, err := Parse(strings.NewReader(text))
		if c.refusal == "" && err != nil || c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal) || !strings.Contains(err.Error(), "deadlines.slow")) {
			t.Errorf("%s: %v, want %q", text, err, c.refusal)
		}
		if !strings.Contains(text, "shard") { // the remedy's groups must be there
			text += "shard: {}\n"
		}
		if err != nil {
			passesAsAdvised(t, text)
		}
	}
}

// What slow devices do to rounds: within the share that is not awaited they set no pace.
func TestStragglers(t *testing.T) {
	d := Default().Deadlines
	for _, c := range []struct {
		declared float64
		n, slow  int
		train    time.Duration
		factor   float64
		lasts    time.Duration
		without  bool
	}{
		{0, 30, 0, 20 * time.Second, 20, 20 * time.Second, false},
		{0, 30, 3, 10 * time.Second, 20, 30 * time.Second, true},
		{0, 30, 10, 10 * time.Second, 20, 200 * time.Second, false},
		{0, 30, 10, 20 * time.Second, 20, 5 * time.Minute, true}, // the deadline
		{0.34, 30, 10, 20 * time.Second, 20, time.Minute, true},
		{0.34, 30, 11, 10 * time.Second, 20, 200 * time.Second, false},
		{0.34, 30, 10, time.Second, 20, 10 * time.Second, true}, // deadlines.min
		{0.34, 30, 10, 20 * time.Second, 2.5, 50 * time.Second, false},
	} {
		d.Slow = c.declared
		if lasts, without := d.Stragglers(c.n, c.slow, c.train, c.factor); lasts != c.lasts || without != c.without {
			t.Errorf("%+v: %v, without them %v", c, lasts, without)
		}
	}
}
