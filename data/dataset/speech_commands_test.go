package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Speech Commands' lists hold recordings back from its folder, and are read by their names.
func TestListsHoldRecordingsBack(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"yes/0a_nohash_0.wav", "yes/0b_nohash_0.wav", "no/0a_nohash_0.wav", "no/0c_nohash_0.wav", "no/0d_nohash_0.wav", "_background_noise_/tap.wav"} {
		wav(t, filepath.Join(dir, filepath.FromSlash(name)), 90+i)
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	users := func(path string) string {
		t.Helper()
		set, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		var of []string
		for _, e := range set.Examples {
			of = append(of, set.Labels[e.Label]+":"+e.User)
		}
		return strings.Join(of, " ")
	}
	if got, want := users(dir), "no:0a no:0c no:0d yes:0a yes:0b"; got != want {
		t.Errorf("without lists %q, want %q", got, want)
	}
	validation := write("validation_list.txt", "no/0c_nohash_0.wav\n")
	testing := write("testing_list.txt", "yes/0b_nohash_0.wav\r\n\nno/0d_nohash_0.wav\n")
	for path, want := range map[string]string{dir: "no:0a yes:0a", validation: "no:0c", testing: "no:0d yes:0b"} {
		if got := users(path); got != want {
			t.Errorf("%s holds %q, want %q", filepath.Base(path), got, want)
		}
	}
	bad := new(LineError)
	for name, c := range map[string]struct {
		list, says string
		line       int
	}{
		"not there":   {"yes/0b_nohash_0.wav\nno/0x_nohash_0.wav\nno/0y_nohash_0.wav\n", "0x_nohash_0.wav", 2},
		"elsewhere":   {"../yes/0b_nohash_0.wav\n", "word/file", 1},
		"climbing":    {"yes/../../0b_nohash_0.wav\n", "word/file", 1},
		"absolute":    {"/etc/passwd\n", "word/file", 1},
		"no word":     {"\n0b_nohash_0.wav\n", "word/file", 2},
		"a table":     {"yes\tsomething\n", "word/file", 1},
		"twice":       {"yes/0b_nohash_0.wav\nyes/0b_nohash_0.wav\n", "twice", 2},
		"endless":     {strings.Repeat("a", MaxLine+1), "too long", 1},
		"a directory": {"yes/\n", "word/file", 1},
	} {
		write("testing_list.txt", c.list)
		if _, err := Load(testing); !errors.As(err, &bad) || bad.Line != c.line || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want line %d and %q", name, err, c.line, c.says)
		}
	}
	write("testing_list.txt", "no/0c_nohash_0.wav\n")
	if _, err := Load(dir); !errors.As(err, &bad) || !strings.Contains(err.Error(), "to validate and to test") {
		t.Errorf("in both lists: %v", err)
	}
	if got := users(testing); got != "no:0c" {
		t.Errorf("a list alone: %q", got)
	}
}

// A list is bounded, names files of its own folder alone, and reading it never panics.
func FuzzList(f *testing.F) {
	f.Add("yes/0b_nohash_0.wav\nno/a.wav\n")
	f.Add("../x\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), testingList)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := listing(path)
		if err != nil {
			return
		}
		for entry, line := range list {
			if !filepath.IsLocal(entry) || strings.Count(entry, "/") != 1 || line < 1 || line > strings.Count(text, "\n")+1 {
				t.Errorf("%q at line %d", entry, line)
			}
		}
	})
}
