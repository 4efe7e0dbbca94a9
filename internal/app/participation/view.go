package participation

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// view shows the owner of a device what it does: on a terminal one line that is written
// again, with a bar, the time left and bytes, and above it what must not be missed;
// elsewhere a line for each event that matters; with --json every event as a line of JSON. What
// others write to the same stream goes through its Write, which takes the line away.
type view struct {
	w        io.Writer
	events   *json.Encoder // nil: not with --json
	live     bool
	width    int
	promised func() uint64 // rounds of the job; 0: not known
	where    string        // the coordinator's address; "": not known

	mu       sync.Mutex
	standing bool      // by mu and all below: a line stands
	painted  time.Time // when
	state    edge.State
	pace     pace
	up, down int64
}

// newView returns a view on stderr, and as events if they are not nil; promised is how many rounds the job has, 0 where
// that is not known.
func newView(stderr io.Writer, events *json.Encoder, promised func() uint64) *view {
	v := &view{w: stderr, events: events, promised: promised}
	v.width, v.live = terminal.Width(stderr)
	v.live = v.live && events == nil
	return v
}

// Write erases the progress line, then writes b.
func (v *view) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	return v.w.Write(b)
}

// Clear erases the progress line.
func (v *view) Clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
}

func (v *view) clear() {
	if v.standing {
		fmt.Fprintf(v.w, "\r%s\r", strings.Repeat(" ", v.width-1))
		v.standing = false
	}
}

// Show displays an event.
func (v *view) Show(e edge.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.up, v.down = e.Up, e.Down
	if v.events != nil {
		_ = v.events.Encode(e) // a stream that is gone fails at the report, too
		return
	}
	if e.Round > 0 && (e.State == edge.Keying || e.State == edge.Fetching) {
		v.pace.note(e.Version, time.Now())
	}
	if !v.live {
		if !often(e) {
			fmt.Fprintln(v.w, edge.Escape(v.words(e), false))
		}
		return
	}
	if missed(e) {
		v.clear()
		fmt.Fprintln(v.w, terminal.Wrap(edge.Escape(v.words(e), false), v.width, ""))
	}
	if e.State == v.state && time.Since(v.painted) < repaint {
		return
	}
	v.state, v.painted = e.State, time.Now()
	v.clear()
	line := []rune(edge.Escape(v.line(e, v.painted), false))
	fmt.Fprint(v.w, string(line[:min(len(line), max(0, v.width-1))]))
	v.standing = true
}

// repaint is how often steps of one state are shown.
const repaint = 100 * time.Millisecond

// often reports whether an event comes many times a round.
func often(e edge.Event) bool {
	return (e.State == edge.Training || e.State == edge.Fetching || e.State == edge.Uploading) && e.Done > 0
}

// missed tells of events whose words an owner should find above the line that is gone.
func missed(e edge.Event) bool {
	switch e.State {
	case edge.Preparing, edge.Waiting, edge.Keying, edge.Training, edge.Abandoned, edge.Dropped, edge.Refused:
		return e.Text != ""
	}
	return false
}

// line is the bar, how far the job is, the time left, what is done now, and bytes: what
// matters least is last, where a narrow terminal cuts it off.
func (v *view) line(e edge.Event, now time.Time) string {
	var parts []string
	all := v.promised()
	switch {
	case e.State == edge.Fetching && e.Total > 0:
		parts = append(parts, fmt.Sprintf("%s %s of %s", bar(float64(e.Done)/float64(e.Total)), terminal.Bytes(e.Done), terminal.Bytes(e.Total)))
	case all > 0 && v.pace.seen:
		made := min(v.pace.version, all)
		parts = append(parts, fmt.Sprintf("%s %d of %d rounds", bar(float64(made)/float64(all)), made, all))
		if left, ok := v.pace.left(all, now); ok {
			parts = append(parts, "about "+spoken(left)+" left")
		}
	}
	doing := v.words(e)
	if e.State == edge.Training && e.Total > 0 {
		doing = fmt.Sprintf("training, step %d of %d", e.Done, e.Total)
	}
	if e.State == edge.Preparing {
		doing = "reading your data" // what else it says stands above
	}
	return strings.Join(append(parts, doing, "sent "+terminal.Bytes(v.up), "received "+terminal.Bytes(v.down)), " · ")
}

// bar draws a share as a bar.
func bar(share float64) string {
	const cells = 16
	full := int(max(0, min(1, share)) * cells)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", cells-full) + "]"
}

// spoken is a time in one unit or two.
func spoken(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()+.5))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()+.5))
	}
	minutes := int(d.Minutes() + .5)
	return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
}

// technical is what a socket says of its own end, to its programmer.
var technical = regexp.MustCompile(`(?i)\b(?:code|status|errno) -?\d|\bdial|websocket|\b(?:wss?|https?|tcp|udp):|\btcp\b|\bEOF\b|i/o|deadline exceeded|\bsocket\b|connection re(?:set|fused)`)

// words say what a device does, and with whom there is no connection.
func (v *view) words(e edge.Event) string {
	said := words(e)
	if e.State != edge.Backoff || e.Limited || v.where == "" {
		return said
	}
	what, why, _ := strings.Cut(strings.TrimPrefix(said, "no connection"), ": ")
	return "no connection to " + v.where + what + ", until this is stopped: " + why
}

// words say what a device does, as its owner reads it; --json has the program's own.
func words(e edge.Event) string {
	round := ""
	if e.Round > 0 {
		round = fmt.Sprintf(" of round %d", e.Round)
	}
	because := ""
	if e.Text != "" {
		because = ": " + oneLine(e.Text)
	}
	switch e.State {
	case edge.Connecting:
		return "connecting"
	case edge.Preparing:
		return "preparing" + because
	case edge.Waiting:
		return "waiting for the next round" + because
	case edge.Keying:
		return "agreeing on keys with the other devices" + round + because
	case edge.Fetching:
		return "fetching what is needed" + round + because
	case edge.Training:
		return "training" + rank(e) + round + because
	case edge.Uploading:
		return "sending the masked update" + round + because
	case edge.Collecting:
		return "waiting for the other devices" + round + because
	case edge.Revealing:
		return "helping to unmask the sum" + round + because
	case edge.Committed:
		return fmt.Sprintf("round %d is made", e.Round)
	case edge.Abandoned:
		return fmt.Sprintf("round %d was abandoned; the next one is tried", e.Round) + because
	case edge.Dropped:
		return fmt.Sprintf("round %d went on without this device; it joins the next one", e.Round) + because
	case edge.Refused:
		return fmt.Sprintf("this device declined round %d", e.Round) + because
	case edge.Backoff:
		again := spoken(time.Duration(e.Total) * time.Millisecond)
		if e.Limited {
			return fmt.Sprintf("resting for %s", again) + because
		}
		if technical.MatchString(e.Text) {
			because = cause(e.Text)
		}
		if because == "" {
			because = ": the coordinator gave no reason"
		}
		if e.Total < time.Second.Milliseconds() {
			return "no connection; trying again at once" + because
		}
		return fmt.Sprintf("no connection; trying again in %s", again) + because
	case edge.Finished:
		return "the job is over" + because
	}
	return string(e.State) + because
}

// causes are what a socket's own words come to for its owner; the first that fits counts.
var causes = []struct {
	of  *regexp.Regexp
	say string
}{
	{regexp.MustCompile(`(?i)refused`), "nothing listens at the coordinator's address: is it running?"},
	{regexp.MustCompile(`(?i)no route|unreachable`), "the network does not reach the coordinator"},
	{regexp.MustCompile(`(?i)answers 5\d\d`), "the coordinator, or a proxy before it, is not ready"},
	{regexp.MustCompile(`(?i)timeout|deadline exceeded`), "the coordinator does not answer"},
	{regexp.MustCompile(`(?i)reset|EOF|close`), "the connection broke"},
}

func cause(text string) string {
	for _, c := range causes {
		if c.of.MatchString(text) {
			return ": " + c.say
		}
	}
	return ""
}

// oneLine joins the lines of a text, such as the limits that a round is beyond.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(text), ":\n", ": "), "\n", "; ")
}

func rank(e edge.Event) string {
	if e.Rank == 0 {
		return ""
	}
	return fmt.Sprintf(" at rank %d", e.Rank)
}

// pace tells how long the rest of a job takes, by the rounds that were seen to be made.
type pace struct {
	seen    bool
	version uint64    // rounds made
	first   uint64    // of those timed
	from    time.Time // when first was made; zero before one was seen to be
	last    time.Time // when version was
}

// note records how many rounds are made.
func (p *pace) note(version uint64, now time.Time) {
	if p.seen && version == p.version {
		return
	}
	if p.seen && version < p.version { // a store that was put back
		*p = pace{}
	}
	if p.seen && p.from.IsZero() { // those before this device looked are not timed
		p.first, p.from = version, now
	}
	p.seen, p.version, p.last = true, version, now
}

// left is the time until all rounds are made, where that can be told.
func (p *pace) left(all uint64, now time.Time) (time.Duration, bool) {
	if p.from.IsZero() || p.version-p.first < 2 || p.version >= all {
		return 0, false
	}
	each := p.last.Sub(p.from) / time.Duration(p.version-p.first)
	if now.Sub(p.last) > 3*each+10*time.Second {
		return 0, false // it has stalled
	}
	return max(each, each*time.Duration(all-p.version)-now.Sub(p.last)), true
}
