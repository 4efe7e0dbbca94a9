package progress

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

func shown(width int, live bool, ps ...monitor.Status) string {
	var out bytes.Buffer
	job := job.Default()
	job.Privacy.SimulatedPopulation = 1_000_000
	v := NewView(&out, job, "accuracy: on 128 of the 800 validation texts while rounds run, on all of them at the end")
	v.width, v.live = width, live
	for _, p := range ps {
		v.Show(p)
	}
	return out.String()
}

func widest(text string) (n int) {
	for line := range strings.Lines(text) {
		for part := range strings.SplitSeq(line, "\r") {
			n = max(n, utf8.RuneCountInString(strings.TrimRight(part, "\n")))
		}
	}
	return n
}

// The table fits its terminal, and its epsilons are those of a delta and an
// accountant, of nobody here where they are simulated, and never seconds.
func TestProgressFits(t *testing.T) {
	g := &dp.Guarantee{Epsilon: 1.2789, Delta: 2.51e-7, Accountant: dp.Tight, Simulated: true}
	p := monitor.Status{Turnout: monitor.Turnout{Cohort: 10_000, Dropped: 1000}, Traffic: monitor.Traffic{BytesUp: 999_900_000, BytesDown: 999_900_000}}
	p.Version, p.Rounds, p.Rank, p.State = 100, 999, 64, monitor.StateCommitted
	p.Validation, p.Simulated, p.Delivered = []metric.RankAccuracy{{Rank: 1, Accuracy: 1}}, g, g
	lost := p
	lost.State, lost.Reason = monitor.StateAbandoned, strings.Repeat("a long reason ", 20)
	running := p
	running.State = "collecting"
	for _, width := range []int{60, 80, 100, 200} {
		for _, live := range []bool{false, true} {
			out := shown(width, live, p, running, lost)
			if n := widest(out); n >= width {
				t.Errorf("%d columns of %d:\n%s", n, width, out)
			}
			flat := strings.Join(strings.Fields(out), " ")
			for _, want := range []string{"1.279", "SIMULATED for a population of 1000000, at delta 2.51e-07, tight accountant", "committed", "because: a long",
				"on 128 of the 800"} {
				if !strings.Contains(flat, want) {
					t.Errorf("width %d: no %q in\n%s", width, want, out)
				}
			}
			if strings.Contains(flat, "1.279 s") {
				t.Errorf("an epsilon in seconds:\n%s", out)
			}
			if (width >= 80) != strings.Contains(out, "down") {
				t.Errorf("width %d:\n%s", width, out)
			}
		}
	}
	p.Simulated = nil
	if out := shown(60, false, p); !strings.Contains(out, "epsilon: at delta 2.51e-07") || strings.Contains(out, "SIMULATED") {
		t.Errorf("delivered:\n%s", out)
	}
}

// Anyone who waits for devices is told for how many.
func TestProgressSaysWhatIsWaitedFor(t *testing.T) {
	waiting := func(enrolled, connected int) monitor.Status {
		s := monitor.Status{Enrolled: enrolled, Connected: connected}
		s.State = monitor.StateWaiting
		return s
	}
	for _, live := range []bool{false, true} {
		out := shown(60, live, waiting(3, 2), waiting(24, 2))
		for _, want := range []string{"waiting for devices: 3 of 24 enrolled", fmt.Sprintf("waiting for devices: 2 connected, %d needed for a round", job.Default().MinConnected())} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %q", want, out)
			}
		}
	}
	if out := shown(60, false, waiting(24, 24)); out != "" {
		t.Errorf("all are there, and it says %q", out)
	}
}
