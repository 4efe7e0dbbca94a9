package accounts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// numbered are lines of a labelled file, from..to.
func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%s\tthe fox number %d\n", []string{"one", "two"}[i%2], i)
	}
	return b.String()
}

// gaveTo is an account's file of one job.
func gaveTo(rounds int) string {
	return fmt.Sprintf(`{"version":1,"jobs":{"aa":{"name":"one","promised":20,"answered":%d,"begun":%d,"contributed":%d,"committed":1,`+
		`"noise":1,"delta":1e-6,"last":1}},"begun":{"7":2}}`, rounds, rounds, rounds)
}

// given is how many rounds a data set has given, as the account of it says.
func given(t *testing.T, a *Folder, data, identity string) int {
	t.Helper()
	account, err := a.Look(loaded(t, data), data, identity)
	if err != nil {
		t.Fatal(err)
	}
	if account == nil {
		return 0
	}
	n := 0
	for _, j := range account.Jobs() {
		n += int(j.Contributed)
	}
	return n
}

func loaded(t *testing.T, data string) *dataset.Set {
	t.Helper()
	set, err := dataset.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func takes(t *testing.T, a *Folder, data, identity string) (*edge.Account, func() error) {
	t.Helper()
	account, release, err := a.Take(loaded(t, data), data, identity)
	if err != nil {
		t.Fatal(err)
	}
	return account, release
}

// The promise is one about data: another identity, another folder, another name, some
// lines more or less or in another order do not begin it anew. Other data begins its
// own, and the lookup writes nothing of the texts down.
func TestHostileAccountOfACopy(t *testing.T) {
	folder := t.TempDir()
	in := func(names ...string) string {
		path := filepath.Join(append([]string{folder}, names...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kept, err := Open(in("accounts"))
	if err != nil {
		t.Fatal(err)
	}
	data, identity := in("one", "a.tsv"), in("one", "id.pem")
	write(t, data, numbered(0, 1000))
	account, release := takes(t, kept, data, identity)
	old, err := edge.NewAccount([]byte(gaveTo(5)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := account.Merge(old); err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}

	lines := strings.SplitAfter(numbered(0, 1000), "\n")
	slices.Reverse(lines)
	for name, text := range map[string]string{
		"a copy":               numbered(0, 1000),
		"in another order":     strings.Join(lines, ""),
		"labelled otherwise":   strings.ReplaceAll(numbered(0, 1000), "one\t", "three\t"),
		"each line twice":      numbered(0, 1000) + numbered(0, 1000),
		"grown":                numbered(0, 1400),
		"with as much beside":  numbered(0, 1900),
		"a part":               numbered(100, 400),
		"a part and something": numbered(500, 1100),
	} {
		other := in("two", name, "b.tsv")
		write(t, other, text)
		if n := given(t, kept, other, in("two", "id.pem")); n != 5 {
			t.Errorf("%s: its account has %d rounds, 5 expected", name, n)
		}
		first, free := takes(t, kept, data, identity)
		if _, _, err := kept.Take(loaded(t, other), other, in("two", "id.pem")); err == nil || !strings.Contains(err.Error(), "one job at a time") {
			t.Errorf("%s: two jobs at once: %v", name, err)
		}
		if err := free(); err != nil || first == nil {
			t.Fatal(err)
		}
	}
	stranger := in("two", "c.tsv")
	write(t, stranger, numbered(5000, 6000))
	if n := given(t, kept, stranger, in("two", "id.pem")); n != 0 {
		t.Errorf("other data has an account of %d rounds", n)
	}
	// The same file with other texts is the same data, too: its owner has edited it.
	write(t, data, numbered(7000, 8000))
	if n := given(t, kept, data, in("two", "id.pem")); n != 5 {
		t.Errorf("an edited file: %d", n)
	}
	files, err := os.ReadDir(kept.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(kept.dir, f.Name()))
		if err != nil || strings.Contains(string(b), "fox") {
			t.Errorf("%s: %v, %.80q", f.Name(), err, b)
		}
	}
}

// Prompts and conversations are known again by what is asked in them: other ones are other data, and other answers are
// not.
func TestAccountsOfConversations(t *testing.T) {
	kept, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, line := range map[string]string{
		"prompts":       `{"prompt":"text %d","completion":"%s"}`,
		"conversations": `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"text %d"},{"role":"assistant","content":"%s"}]}`,
	} {
		file := func(of string, from int, answer string) string {
			var b strings.Builder
			for i := range 20 {
				fmt.Fprintf(&b, line+"\n", from+i, answer)
			}
			path := filepath.Join(folder, name+of+".jsonl")
			write(t, path, b.String())
			return path
		}
		first := file("1", 0, "yes")
		_, release := takes(t, kept, first, first+".pem")
		other := file("2", 100, "yes")
		_, free := takes(t, kept, other, other+".pem") // on this machine, at the same time
		again := file("3", 0, "no")
		if _, _, err := kept.Take(loaded(t, again), again, again+".pem"); err == nil || !strings.Contains(err.Error(), "one job at a time") {
			t.Errorf("%s with other answers: %v", name, err)
		}
		if err := errors.Join(release(), free()); err != nil {
			t.Fatal(err)
		}
	}
}

// What versions before have kept beside identities is added up, once.
func TestOldAccounts(t *testing.T) {
	folder := t.TempDir()
	kept, err := Open(filepath.Join(folder, "accounts"))
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(folder, "a.tsv")
	write(t, data, numbered(0, 10))
	for i, rounds := range []int{3, 4} {
		identity := filepath.Join(folder, fmt.Sprint(i), "id.pem")
		if err := os.Mkdir(filepath.Dir(identity), 0o700); err != nil {
			t.Fatal(err)
		}
		old, err := OldPath(identity, data)
		if err != nil {
			t.Fatal(err)
		}
		write(t, old, gaveTo(rounds))
		want := []int{3, 7}[i]
		if n := given(t, kept, data, identity); n != want {
			t.Errorf("seen from identity %d: %d rounds, %d expected", i, n, want)
		}
		for range 2 {
			_, release := takes(t, kept, data, identity)
			if err := release(); err != nil {
				t.Fatal(err)
			}
		}
		if n := given(t, kept, data, identity); n != want {
			t.Errorf("taken over from identity %d: %d rounds, %d expected", i, n, want)
		}
	}
	// Two data sets that become one: what both gave.
	other := filepath.Join(folder, "b.tsv")
	write(t, other, numbered(10, 20))
	identity := filepath.Join(folder, "2", "id.pem")
	if err := os.Mkdir(filepath.Dir(identity), 0o700); err != nil {
		t.Fatal(err)
	}
	old, err := OldPath(identity, other)
	if err != nil {
		t.Fatal(err)
	}
	write(t, old, gaveTo(2))
	_, release := takes(t, kept, other, identity)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	both := filepath.Join(folder, "c.tsv")
	write(t, both, numbered(0, 20))
	_, release = takes(t, kept, both, identity)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{both, data, other} {
		if n := given(t, kept, path, identity); n != 9 {
			t.Errorf("%s: %d rounds, 9 expected", path, n)
		}
	}
}

// Of many that want the same data at once one has it.
func TestOneJobAtATime(t *testing.T) {
	folder := t.TempDir()
	data := filepath.Join(folder, "a.tsv")
	write(t, data, numbered(0, 10))
	set := loaded(t, data)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var held []func() error // kept, since the collector closes a lock's file that nobody holds
	for i := range 8 {
		wg.Go(func() {
			kept, err := Open(filepath.Join(folder, "accounts"))
			var release func() error
			if err == nil {
				_, release, err = kept.Take(set, data, filepath.Join(folder, fmt.Sprint(i), "id.pem"))
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				held = append(held, release)
			} else if !strings.Contains(err.Error(), "one job at a time") {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(held) != 1 {
		t.Errorf("%d hold the data", len(held))
	}
	for _, release := range held {
		if err := release(); err != nil {
			t.Error(err)
		}
	}
}

// A description that somebody has spoilt is an error, not another data set.
func TestHostileSketchFile(t *testing.T) {
	kept, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "a.tsv")
	write(t, data, numbered(0, 10))
	write(t, filepath.Join(kept.dir, "x.data.json"), `{"version":2}`)
	if _, _, err := kept.Take(loaded(t, data), data, data); err == nil || !strings.Contains(err.Error(), "x.data.json") {
		t.Error(err)
	}
}

func FuzzSketch(f *testing.F) {
	f.Add([]byte(`{"version":1,"paths":["/a"],"size":3,"sample":["0000000000000001","00000000000000ff"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSketch(b)
		if err != nil {
			return
		}
		hashes := map[string]bool{"0000000000000001": true, "1000000000000001": true}
		s.same(hashes, "/b")
		s.grow(hashes, "/b")
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseSketch(again); err != nil {
			t.Errorf("grown: %v: %s", err, again)
		}
	})
}
