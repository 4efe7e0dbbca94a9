// Package mutant puts small faults into a copy of one file and asks whether a test
// notices (mutation testing: DeMillo, Lipton, Sayward 1978, "Hints on test data
// selection"). Each is a record that a person wrote: a text of the program, what stands
// in its place, and the test that must fail for it. The copy is laid over the tree by
// the go command's -overlay; nothing in the tree changes.
package mutant

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Record is one fault.
type Record struct {
	Name string // what is wrong with it, in words; begins with its number where it has one
	File string // from the module's root, with slashes
	In   string // the first text of what the old text is looked for in, up to a line that is "}"; empty: the file
	Old  string // must be there once
	New  string
	Test Test
}

// Test names the test that must fail.
type Test struct {
	Package string // ./dp, or ./dp/... for those below it, too
	Run     string // of go test, narrow
}

// ErrRecord is a file of records that cannot be read.
var ErrRecord = errors.New("bad record")

// Read parses records. A record is lines of the form "key: value" (name, file, test, and
// in where it is needed), then the old text, each line behind a minus sign, then the new,
// each behind a plus sign. file and test hold for those that follow, until they
// change. Empty lines, and those that begin with #, stand between records.
func Read(name string, r io.Reader) ([]Record, error) {
	var out []Record
	var now Record
	var old, repl []string
	number := 0
	fail := func(format string, args ...any) ([]Record, error) {
		return nil, fmt.Errorf("%s:%d: %w: %s", name, number, ErrRecord, fmt.Sprintf(format, args...))
	}
	end := func() error {
		if now.Name == "" && old == nil && repl == nil {
			return nil
		}
		switch {
		case now.Name == "":
			return fmt.Errorf("%w: no name", ErrRecord)
		case now.File == "" || now.Test.Package == "" || now.Test.Run == "":
			return fmt.Errorf("%w: %q has no file, or no test", ErrRecord, now.Name)
		case old == nil:
			return fmt.Errorf("%w: %q has no old text", ErrRecord, now.Name)
		}
		now.Old, now.New = strings.Join(old, "\n"), strings.Join(repl, "\n")
		if now.Old == now.New {
			return fmt.Errorf("%w: %q changes nothing", ErrRecord, now.Name)
		}
		out = append(out, now)
		now.Name, now.In, old, repl = "", "", nil, nil
		return nil
	}
	for s := bufio.NewScanner(r); ; {
		number++
		if !s.Scan() {
			if err := errors.Join(s.Err(), end()); err != nil {
				return fail("%v", err)
			}
			return out, nil
		}
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "-"):
			if repl != nil {
				return fail("old text behind new")
			}
			old = append(old, line[1:])
		case strings.HasPrefix(line, "+"):
			repl = append(repl, line[1:])
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			if err := end(); err != nil {
				return fail("%v", err)
			}
		default:
			key, value, _ := strings.Cut(line, ": ")
			switch key {
			case "name":
				if err := end(); err != nil {
					return fail("%v", err)
				}
				now.Name = value
			case "file":
				now.File = value
			case "in":
				now.In = value
			case "test":
				var ok bool
				if now.Test.Package, now.Test.Run, ok = strings.Cut(value, " "); !ok {
					return fail("test: want a package and the tests to run, got %q", value)
				}
			default:
				return fail("%q is not a key; want name, file, in, test, or text behind - or +", line)
			}
		}
	}
}

// ErrApply is a record that no longer fits the program: it has to be written anew.
var ErrApply = errors.New("no longer applies")

// Apply returns the file's text with the fault in it.
func (r Record) Apply(text string) (string, error) {
	from, to := 0, len(text)
	if r.In != "" {
		if from = strings.Index(text, r.In); from < 0 {
			return "", fmt.Errorf("%w: %s has no %q", ErrApply, r.File, r.In)
		}
		if n := strings.Index(text[from:], "\n}\n"); n >= 0 {
			to = from + n
		}
	}
	switch n := strings.Count(text[from:to], r.Old); n {
	case 1:
		return text[:from] + strings.Replace(text[from:to], r.Old, r.New, 1) + text[to:], nil
	case 0:
		return "", fmt.Errorf("%w: the old text is not in %s", ErrApply, r.File)
	default:
		return "", fmt.Errorf("%w: the old text is %d times in %s", ErrApply, n, r.File)
	}
}
