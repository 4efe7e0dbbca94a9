// Package progress shows a running job on standard error: its rounds (View), and whether they
// learn anything (Learning).
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// View shows a running job on standard error: a line for each
// settled round and, on a terminal, a last line that follows the round's
// state. It is called from one goroutine.
type View struct {
	w       io.Writer
	live    bool // w is a terminal: the last line may be rewritten
	width   int  // columns
	job     job.Job
	needed  int    // devices at least, for a round
	note    string // for above the table
	headed  bool
	pending bool // a live line is standing

	Learning *Learning // nil: nothing is measured

	waiting string    // what was last said of what is waited for
	said    time.Time // when
}

// NewView shows a job on w; note is above its table.
func NewView(w io.Writer, job job.Job, note string) *View {
	v := &View{w: w, job: job, needed: job.MinConnected(), note: note}
	v.width, v.live = terminal.Width(w)
	return v
}

// progressColumns are those of the table, in order; the first counts committed rounds. If the terminal is too
// narrow those with the greatest number in least go first.
var progressColumns = []struct {
	title string
	width int // to the right where positive, to the left where negative
	least int // 0: always there
	cell  func(monitor.Status) string
}{
	{" rounds", -7, 0, func(p monitor.Status) string { return fmt.Sprintf("%3d/%-3d", p.Version, p.Rounds) }},
	{"state", -10, 0, func(p monitor.Status) string { return p.State }},
	{"rank", 4, 0, func(p monitor.Status) string {
		if p.Rank == 0 {
			return "–"
		}
		return fmt.Sprint(p.Rank)
	}},
	{"devices", 7, 4, func(p monitor.Status) string { return fmt.Sprint(p.Cohort - p.Absent) }},
	{"dropped", 7, 1, func(p monitor.Status) string { return fmt.Sprint(p.Dropped) }},
	{"accuracy", 8, 0, accuracyText},
	{"epsilon", 7, 0, epsilonText},
	{"up", 8, 2, func(p monitor.Status) string { return terminal.Bytes(p.BytesUp) }},
	{"down", 8, 3, func(p monitor.Status) string { return terminal.Bytes(p.BytesDown) }},
}

// row joins the cells that fit into a width.
func row(width int, cell func(i int) string) string {
	shown := func(least int) (columns int) {
		for _, c := range progressColumns {
			if c.least <= least {
				columns += 1 + max(c.width, -c.width)
			}
		}
		return columns - 1
	}
	least := 4
	for least > 0 && shown(least) >= width {
		least--
	}
	var cells []string
	for i, c := range progressColumns {
		if c.least <= least {
			cells = append(cells, fmt.Sprintf("%*s", c.width, cell(i)))
		}
	}
	return strings.TrimRight(strings.Join(cells, " "), " ")
}

// Show displays a status of the job.
func (v *View) Show(p monitor.Status) {
	switch p.State {
	case monitor.StateCommitted, monitor.StateAbandoned:
		v.clear()
		v.head(p)
		v.line(v.row(p))
		if p.Reason != "" {
			v.line(terminal.Wrap("because: "+p.Reason, v.width, "        "))
		}
		if n := len(p.Validation); n > 0 {
			if said := v.Learning.observe(p.ValidationVersion, p.Validation[n-1].Accuracy); said != "" {
				v.line(terminal.Wrap(said, v.width, "        "))
			}
		}
	case monitor.StateFinished, monitor.StateStopped:
		v.clear()
	case monitor.StateWaiting:
		v.wait(p)
	default:
		v.waiting = ""
		if !v.live {
			return
		}
		v.clear()
		v.head(p)
		v.pend(v.row(p))
	}
}

// wait says for what, at once and where it has changed after a while.
func (v *View) wait(p monitor.Status) {
	enrolled, population := p.Enrolled, v.job.Cohort.Population
	if enrolled >= population && p.Connected >= v.needed {
		return // all are there
	}
	text := fmt.Sprintf("waiting for devices: %d connected, %d needed for a round", p.Connected, v.needed)
	if begins := v.job.StartsWith(); enrolled < begins {
		text = fmt.Sprintf("waiting for devices: %d of %d enrolled", enrolled, population)
		if begins < population {
			text += fmt.Sprintf(", rounds begin with %d", begins)
		}
	}
	if v.live {
		v.clear()
		v.pend(text)
		return
	}
	if text == v.waiting || v.waiting != "" && time.Since(v.said) < 5*time.Second && enrolled < population {
		return
	}
	v.waiting, v.said = text, time.Now()
	v.line(text)
}

func (v *View) line(text string) { fmt.Fprintln(v.w, text) }

// pend writes a line that the next one replaces.
func (v *View) pend(text string) {
	if runes := []rune(text); len(runes) >= v.width {
		text = string(runes[:v.width-1])
	}
	fmt.Fprint(v.w, text)
	v.pending = true
}

// clear takes the standing line away.
func (v *View) clear() {
	if v.pending {
		fmt.Fprintf(v.w, "\r%s\r", strings.Repeat(" ", v.width-1))
		v.pending = false
	}
}

// head names the columns, and what the accuracies and the epsilons are of.
func (v *View) head(p monitor.Status) {
	if v.headed {
		return
	}
	v.headed = true
	for _, note := range []string{v.note, epsilonNote(p, v.job)} {
		if note != "" {
			v.line(terminal.Wrap(note, v.width, ""))
		}
	}
	v.line(row(v.width, func(i int) string { return progressColumns[i].title }))
}

func (v *View) row(p monitor.Status) string {
	return row(v.width, func(i int) string { return progressColumns[i].cell(p) })
}

func accuracyText(p monitor.Status) string {
	best, ok := Best(p.Validation)
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*best.Accuracy)
}

// epsilonText is the guarantee that the budget applies to, of which
// epsilonNote says the rest.
func epsilonText(p monitor.Status) string {
	switch {
	case p.Simulated != nil:
		return fmt.Sprintf("%.3f", p.Simulated.Epsilon)
	case p.Delivered != nil:
		return fmt.Sprintf("%.3f", p.Delivered.Epsilon)
	}
	return "none"
}

// epsilonNote is what the epsilons of the table hold for.
func epsilonNote(p monitor.Status, job job.Job) string {
	if g := p.Simulated; g != nil {
		return fmt.Sprintf("epsilon: SIMULATED for a population of %d, at delta %.3g, %s accountant",
			job.Privacy.SimulatedPopulation, g.Delta, g.Accountant)
	}
	if g := p.Delivered; g != nil {
		return fmt.Sprintf("epsilon: at delta %.3g, %s accountant", g.Delta, g.Accountant)
	}
	return ""
}

// Best is the rank of the highest accuracy; not ok if there is none.
func Best(all []metric.RankAccuracy) (best metric.RankAccuracy, ok bool) {
	for i, r := range all {
		if i == 0 || r.Accuracy > best.Accuracy {
			best = r
		}
	}
	return best, len(all) > 0
}
