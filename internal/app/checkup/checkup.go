// Package checkup looks at what keeps a device from taking part, and says how each thing is put right.
package checkup

import (
	"fmt"
	"io"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// What a check finds.
const (
	OK      = "ok"
	Warning = "warning" // it works, but not for long, or not as well as it could
	Failed  = "failed"
	Unknown = "not checked"
)

// A Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Found  string `json:"found"` // [OK], [Warning], [Failed] or [Unknown]
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"` // what to do about it
}

// Report is all checks, in the order in which they were made.
type Report struct {
	Checks []Check `json:"checks"`
	Failed int     `json:"failed"`
}

// Add adds a check.
func (r *Report) Add(c Check) {
	r.Checks = append(r.Checks, c)
	if c.Found == Failed {
		r.Failed++
	}
}

// Put adds a check that fails by an error, with what to do then. It reports whether the check passed.
func (r *Report) Put(name string, err error, next, detail string, args ...any) bool {
	c := Check{Name: name, Found: OK, Detail: fmt.Sprintf(detail, args...)}
	if err != nil {
		c.Found, c.Detail, c.Next = Failed, err.Error(), next
	}
	r.Add(c)
	return err == nil
}

// warn adds a check that fails nothing.
func (r *Report) warn(name, next, detail string, args ...any) {
	r.Add(Check{name, Warning, fmt.Sprintf(detail, args...), next})
}

// Err returns an error that counts the failed checks; nil if none failed.
func (r *Report) Err() error {
	if r.Failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d checks failed", r.Failed, len(r.Checks))
}

// Print writes a line for each check, and below it the remedy.
func (r *Report) Print(w io.Writer) error {
	columns, _ := terminal.Width(w)
	for _, c := range r.Checks {
		head := fmt.Sprintf("%-11s  %-12s  ", c.Found, c.Name)
		const indent = "                           "
		text := terminal.Wrap(c.Detail, columns-len(indent), "")
		for i, line := range lines(text) {
			if i > 0 {
				head = indent
			}
			if _, err := fmt.Fprintln(w, head+line); err != nil {
				return err
			}
		}
		if c.Next != "" {
			for _, line := range lines(terminal.Wrap("-> "+c.Next, columns-len(indent), "")) {
				if _, err := fmt.Fprintln(w, indent+line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func lines(text string) []string { return strings.Split(text, "\n") }
