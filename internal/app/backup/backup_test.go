package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/model"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func options(hosted bool) store.Options {
	return store.Options{Task: "t", Job: [32]byte{1}, Hosted: hosted, Now: func() time.Time { return now }}
}

// begun is a store that is open, of a folder with a key and a release.
func begun(t *testing.T, dir string, hosted bool) *store.Store {
	t.Helper()
	s, err := store.Open(dir, options(hosted))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	released(t, dir, "1")
	put(t, filepath.Join(dir, "tls.pem"), "a key")
	return s
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func released(t *testing.T, dir, version string) {
	t.Helper()
	put(t, filepath.Join(dir, "checkpoint", model.CheckpointFile), version)
	put(t, filepath.Join(dir, "checkpoint", "base", "config.json"), "base of "+version)
}

// round commits a round as dp charges it.
func round(t *testing.T, s *store.Store, version uint64) {
	t.Helper()
	cert := dp.Certificate{Method: dp.MethodPoisson, Generator: "test", Rate: 1, Population: 24, Nonce: [32]byte{9}}
	id, err := s.BeginRound(store.Round{Version: version - 1, Rank: 3, Certificate: cert})
	if err != nil {
		t.Fatal(err)
	}
	ev, err := dp.ReleaseSpec{Round: id, SamplingRate: 1, B2: 175_000, NoiseMultiplier: 0.8, NoiseScale: 0.0024, SimulatedRate: 0.01, Certificate: cert.Hash()}.Event(8192)
	if err != nil {
		t.Fatal(err)
	}
	ev.Kind = dp.KindRelease
	note := store.Note{Guarantees: dp.Guarantees{Simulated: &dp.Guarantee{Epsilon: 1, Delta: 1e-6, Simulated: true}, Delivered: &dp.Guarantee{Epsilon: 1e5}}}
	if err := s.PersistIntent(ev); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ev, note, store.Checkpoint{Version: version, Round: id, Adapter: []byte{byte(version)}, Optimizer: []byte("o"),
		Kept: &store.Kept{Cohort: [][32]byte{{1}}, Noise: secret, Noises: 1, Cohorts: 1}}); err != nil {
		t.Fatal(err)
	}
}

// secret is what a round's noise added, which nothing else in a store has.
var secret = bytes.Repeat([]byte("what the noise added. "), 300)

// unpacked is what a backup's archive holds.
func unpacked(t *testing.T, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	ok(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	ok(t, err)
	b, err := io.ReadAll(z)
	ok(t, err)
	return b
}

func entries(t *testing.T, dir string) []store.Entry {
	t.Helper()
	l, err := store.ReadLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l.Entries
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What was copied while nothing ran goes on where it was, if somebody says that it is the newest, and is read else.
func TestOfOneThatStopped(t *testing.T) {
	dir, to := filepath.Join(t.TempDir(), "run1"), t.TempDir()
	s := begun(t, dir, false)
	round(t, s, 1)
	round(t, s, 2)
	ok(t, s.Close())
	file := filepath.Join(to, "copy")
	about, err := Make(dir, file, "v1", now)
	ok(t, err)
	if about.Running || !slices.Equal(about.Stores, []string{"."}) || len(about.Files) != 4 {
		t.Fatalf("%+v", about)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := Make(dir, file, "v1", now); !errors.Is(err, fs.ErrExist) {
		t.Errorf("written over: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, besides+"*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}

	read, newest := filepath.Join(to, "read"), filepath.Join(to, "newest")
	for folder, is := range map[string]bool{read: false, newest: true} {
		again, err := Restore(file, folder, is)
		ok(t, err)
		if !reflect.DeepEqual(again, about) {
			t.Errorf("%+v, want %+v", again, about)
		}
		if got := entries(t, folder); !reflect.DeepEqual(got, entries(t, dir)) {
			t.Errorf("the ledger is %v", got)
		}
		for name, want := range map[string]string{"tls.pem": "a key", "checkpoint/base/config.json": "base of 1"} {
			if b, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(b) != want {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		}
		if _, err := Restore(file, folder, is); !errors.Is(err, ErrOccupied) {
			t.Errorf("put over another: %v", err)
		}
	}
	for range 2 {
		if _, err := store.Open(read, options(false)); !errors.Is(err, store.ErrRestored) {
			t.Fatalf("it goes on from a copy that nobody vouches for: %v", err)
		}
	}
	s, err = store.Open(newest, options(false))
	ok(t, err)
	round(t, s, 3)
	ok(t, s.Close())
	if n := len(entries(t, newest)); n != 3 {
		t.Errorf("%d entries", n)
	}
}

// What was copied while a coordinator ran is one moment of it, and nobody can go on from it.
func TestOfOneThatRuns(t *testing.T) {
	dir, to := filepath.Join(t.TempDir(), "run1"), t.TempDir()
	s := begun(t, dir, false)
	round(t, s, 1)
	file := filepath.Join(to, "copy")
	left := filepath.Join(dir, besides+"1")
	put(t, filepath.Join(left, store.FileName), "of a backup that was killed")
	ok(t, os.Chtimes(left, now, now.Add(-2*time.Hour)))
	about, err := Make(dir, file, "v1", now)
	ok(t, err)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was left is there: %v", err)
	}
	if !about.Running {
		t.Error("it is said to have stopped")
	}
	if bytes.Contains(unpacked(t, file), secret[:100]) { // pages divide it
		t.Error("noise that only a coordinator needs is in it")
	}
	round(t, s, 2)
	newest := filepath.Join(to, "newest")
	if _, err := Restore(file, newest, true); !errors.Is(err, ErrNotNewest) {
		t.Fatalf("taken for the newest: %v", err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	_, err = Restore(file, newest, false)
	ok(t, err)
	if got := entries(t, newest); !reflect.DeepEqual(got, entries(t, dir)[:1]) {
		t.Errorf("%v", got)
	}
}

// A server's backup has the ledger of its fleet and those of all jobs, the fleet's last.
func TestOfAServer(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	fleet, err := store.OpenShared(dir)
	ok(t, err)
	for _, name := range []string{"b", "a"} {
		s := begun(t, filepath.Join(dir, "jobs", name), true)
		round(t, s, 1)
		ok(t, s.Close())
	}
	file := filepath.Join(to, "copy")
	about, err := Make(dir, file, "v1", now)
	ok(t, err)
	if !about.Running || !slices.Equal(about.Stores, []string{"jobs/a", "jobs/b", "fleet"}) {
		t.Errorf("%+v", about)
	}
	ok(t, fleet.Close())
	if _, err := Make(dir, file+"2", "v1", now); err != nil {
		t.Error(err)
	}
	ok(t, os.WriteFile(file+"3.part", nil, 0o600))
	if _, err := Make(dir, file+"3", "v1", now); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("into what somebody has made: %v", err)
	}
	put2 := filepath.Join(to, "again")
	_, err = Restore(file, put2, false)
	ok(t, err)
	if _, err := store.OpenShared(put2); !errors.Is(err, store.ErrRestored) {
		t.Errorf("a server goes on: %v", err)
	}
	if n := len(entries(t, filepath.Join(put2, "jobs", "b"))); n != 1 {
		t.Errorf("%d entries", n)
	}
	stopped := filepath.Join(to, "stopped")
	if about, err = Make(dir, stopped, "v1", now); err != nil || about.Running {
		t.Errorf("%+v, %v", about, err)
	}
}

func TestOfNothing(t *testing.T) {
	if _, err := Make(t.TempDir(), filepath.Join(t.TempDir(), "copy"), "v1", now); !errors.Is(err, store.ErrNoStore) {
		t.Error(err)
	}
}

// archive packs entries, the manifest last where there is one.
func archive(t testing.TB, about *About, names ...string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	add := func(name string, body []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(body))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		add(name, []byte("x"))
	}
	if about != nil {
		j, err := json.Marshal(about)
		if err != nil {
			t.Fatal(err)
		}
		add(manifestName, j)
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(b)
	ok(t, errors.Join(err, z.Close()))
	return out.Bytes()
}

// A file that is no backup, or was damaged, leaves nothing.
func TestBroken(t *testing.T) {
	dir, to := filepath.Join(t.TempDir(), "run1"), t.TempDir()
	s := begun(t, dir, false)
	round(t, s, 1)
	ok(t, s.Close())
	file := filepath.Join(to, "copy")
	_, err := Make(dir, file, "v1", now)
	ok(t, err)
	whole, err := os.ReadFile(file)
	ok(t, err)
	x := "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // SHA-256 of "x"
	cases := map[string][]byte{
		"empty": nil, "no archive": []byte("hello"), "half": whole[:len(whole)/2], "without its end": whole[:len(whole)-20],
		"no list": archive(t, nil, "starling.db"), "no ledger": archive(t, &About{}),
		"above":            archive(t, &About{Stores: []string{".."}, Files: []File{{"../starling.db", 1, x}}}, "../starling.db"),
		"a root":           archive(t, &About{Stores: []string{"/"}, Files: []File{{"/starling.db", 1, x}}}, "/starling.db"),
		"twice":            archive(t, &About{Stores: []string{"."}, Files: []File{{"starling.db", 1, x}, {"starling.db", 1, x}}}, "starling.db", "starling.db"),
		"another's":        archive(t, &About{Stores: []string{"."}, Files: []File{{"starling.db", 1, x[1:]}}}, "starling.db"),
		"a ledger missing": archive(t, &About{Stores: []string{".", "jobs/a"}, Files: []File{{"starling.db", 1, x}}}, "starling.db"),
	}
	cases["cut within an entry"] = gzipped(t, unpacked(t, file)[:1000])
	cases["a name changed"] = gzipped(t, bytes.Replace(unpacked(t, file), []byte("tls.pem"), []byte("tls.pen"), 1))
	for i := range 8 {
		b := slices.Clone(whole)
		b[40+i*(len(b)-80)/8] ^= 0x10
		cases["damaged "+string(rune('0'+i))] = b
	}
	for name, b := range cases {
		at := filepath.Join(to, "broken")
		ok(t, os.WriteFile(at, b, 0o600))
		if _, err := Restore(at, filepath.Join(to, "out"), true); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
		ok(t, os.Remove(at))
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, &About{Stores: []string{"."}, Files: []File{{"starling.db", 1, ""}}}, "starling.db"))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, b []byte) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "in")
		ok(t, os.Mkdir(dir, 0o700))
		about, err := unpack(bytes.NewReader(b), dir)
		if err == nil && len(about.Stores) == 0 {
			t.Error("a backup of nothing")
		}
		if left, err := os.ReadDir(outer); err != nil || len(left) != 1 {
			t.Errorf("beside: %v, %v", left, err)
		}
	})
}
