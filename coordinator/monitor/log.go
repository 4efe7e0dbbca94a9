package monitor

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Occurrence is a line of the coordinator's log, for the operator.
type Occurrence struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"` // "INFO", "WARN" or "ERROR"
	What  string    `json:"what"`
	// Details are the line's attributes as pairs "key=value".
	Details []string `json:"details,omitempty"`
}

// maxOccurrences is how many lines are kept.
const maxOccurrences = 200

// occurrences keeps the last lines of the log that an operator should see.
type occurrences struct {
	mu    sync.Mutex
	lines []Occurrence // by mu; oldest first
	total int          // by mu; lines ever added
}

// after returns the lines that came after the first n, as far as they are kept,
// and how many there have been.
func (o *occurrences) after(n int) ([]Occurrence, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fresh := min(o.total-n, len(o.lines))
	return slices.Clone(o.lines[len(o.lines)-fresh:]), o.total
}

func (o *occurrences) add(line Occurrence) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lines) >= maxOccurrences {
		o.lines = slices.Delete(o.lines, 0, len(o.lines)-maxOccurrences+1)
	}
	o.lines = append(o.lines, line)
	o.total++
}

// tee is a slog.Handler that keeps lines from Info up beside handing them on. The
// log's own rule holds for both: it never has updates, seeds, shares or keys.
type tee struct {
	to    *occurrences
	next  slog.Handler
	attrs []string
}

func (t tee) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || t.next.Enabled(ctx, level)
}

func (t tee) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		line := Occurrence{Time: r.Time, Level: r.Level.String(), What: r.Message, Details: slices.Clone(t.attrs)}
		r.Attrs(func(a slog.Attr) bool {
			line.Details = append(line.Details, a.Key+"="+cut(a.Value.String()))
			return true
		})
		t.to.add(line)
	}
	if !t.next.Enabled(ctx, r.Level) {
		return nil
	}
	return t.next.Handle(ctx, r)
}

// maxDetail bounds what one attribute of a line is kept with, in bytes.
const maxDetail = 300

func cut(s string) string { return s[:min(len(s), maxDetail)] }

func (t tee) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := slices.Clone(t.attrs)
	for _, a := range attrs {
		more = append(more, a.Key+"="+cut(a.Value.String()))
	}
	return tee{t.to, t.next.WithAttrs(attrs), more}
}

func (t tee) WithGroup(name string) slog.Handler { return tee{t.to, t.next.WithGroup(name), t.attrs} }
