package fleetdata

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/files"
)

// writeLabelled writes examples as a JSON Lines file.
func writeLabelled(t *testing.T, examples []dataset.Example) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.jsonl")
	if err := files.WriteJSONLines(path, &dataset.Set{Labels: []string{"bad", "good"}, Examples: examples}); err != nil {
		t.Fatal(err)
	}
	return path
}

func withNames(n int, user, provider func(i int) string) []dataset.Example {
	var out []dataset.Example
	for i := range n {
		e := dataset.Example{Text: fmt.Sprint("text ", i), Label: i % 2}
		if user != nil {
			e.User = user(i)
		}
		if provider != nil {
			e.Provider = provider(i)
		}
		out = append(out, e)
	}
	return out
}

func of(n int, name string) func(int) string {
	return func(i int) string { return fmt.Sprint(name, i/2%n) }
}

// Whom a file names is in one of training, validation and test: validation
// chooses the rank and is scored without noise.
func TestFileDataHoldsOutWhoIsNamed(t *testing.T) {
	for _, c := range []struct {
		name           string
		examples       []dataset.Example
		users, provids bool // that must not be on both sides
		ByGroup        bool
		note           string
	}{
		{"users", withNames(600, of(60, "u"), nil), true, false, false, ""},
		{"providers", withNames(600, nil, of(60, "p")), false, true, false, ""},
		{"both", withNames(600, of(60, "u"), of(20, "p")), true, true, false, ""},
		{"entangled", withNames(600, of(60, "u"), of(59, "p")), true, false, false, "entangled"},
		{"entangled, providers protected", withNames(600, of(60, "u"), of(59, "p")), false, true, true, "entangled"},
		{"one user", withNames(600, of(1, "u"), nil), false, false, false, "too few are named"},
	} {
		d, err := File{Path: writeLabelled(t, c.examples), Seed: 3, Clients: 8, Alpha: 1, ByGroup: c.ByGroup}.Load()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		trained := map[string]bool{}
		n := len(d.Validation.Examples) + len(d.Test.Examples)
		for i, client := range d.Clients {
			if len(client.Examples) == 0 {
				t.Errorf("%s: client %d has nothing", c.name, i)
			}
			for _, e := range client.Examples {
				trained["user "+e.User], trained["provider "+e.Provider] = true, true
			}
			n += len(client.Examples)
		}
		if n != len(c.examples) {
			t.Errorf("%s: %d examples of %d", c.name, n, len(c.examples))
		}
		held := [2]map[string]bool{{}, {}}
		for i, part := range []*dataset.Set{d.Validation, d.Test} {
			for _, e := range part.Examples {
				if c.users && trained["user "+e.User] || c.provids && trained["provider "+e.Provider] {
					t.Fatalf("%s: %+v is held out, and trained on by name", c.name, e)
				}
				held[i]["user "+e.User], held[i]["provider "+e.Provider] = true, true
			}
		}
		for name := range held[0] {
			who, of, _ := strings.Cut(name, " ")
			if held[1][name] && of != "" && (who == "user" && c.users || who == "provider" && c.provids) {
				t.Errorf("%s: %s is in validation and test", c.name, name)
			}
		}
		if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: notes %q, want %q", c.name, notes, c.note)
		}
	}
}

// No division leaves an edge without data: such an edge would be waited for
// without end. What cannot be divided is refused.
func TestFileDataLeavesNobodyEmpty(t *testing.T) {
	for _, c := range []struct {
		name     string
		examples []dataset.Example
		alpha    float64
		ByGroup  bool
		note     string
		err      string
	}{
		{"one user", withNames(300, of(1, "u"), nil), 1, false, "1 users are left to train on, fewer than 24 devices: divided by label", ""},
		{"ten users", withNames(300, of(10, "u"), nil), 1, false, "fewer than 24 devices: divided by label", ""},
		{"skewed", withNames(300, nil, nil), 0.001, false, "would have had no example", ""},
		{"few", withNames(24, nil, nil), 1, false, "", "are left to train on, fewer than 24 devices"},
		{"few providers", withNames(300, nil, of(10, "p")), 1, true, "", "providers are left to train on, fewer than 24 devices"},
	} {
		d, err := File{Path: writeLabelled(t, c.examples), Seed: 1, Clients: 24, Alpha: c.alpha, ByGroup: c.ByGroup}.Load()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), "--devices") {
				t.Errorf("%s: %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil || len(d.Clients) != 24 {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i, client := range d.Clients {
			if len(client.Examples) == 0 {
				t.Errorf("%s: client %d has nothing", c.name, i)
			}
		}
		if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, c.note) {
			t.Errorf("%s: notes %q, want %q", c.name, notes, c.note)
		}
	}
	// A provider that is protected is in one edge.
	d, err := File{Path: writeLabelled(t, withNames(600, nil, of(40, "p"))), Seed: 1, Clients: 24, Alpha: 1, ByGroup: true}.Load()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, client := range d.Clients {
		for _, e := range client.Examples {
			if was, seen := at[e.Provider]; seen && was != i {
				t.Fatalf("provider %s is in edges %d and %d", e.Provider, was, i)
			}
			at[e.Provider] = i
		}
	}
}

// The division follows from the seed.
func TestFileDataIsRepeatable(t *testing.T) {
	path := writeLabelled(t, withNames(600, of(60, "u"), of(20, "p")))
	var runs [2]string
	for i := range runs {
		d, err := File{Path: path, Seed: 9, Clients: 8, Alpha: 1}.Load()
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = fmt.Sprint(*d.Test, *d.Validation)
		for _, c := range d.Clients {
			runs[i] += fmt.Sprint(*c)
		}
	}
	if runs[0] != runs[1] {
		t.Error("two runs divide differently")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
}
