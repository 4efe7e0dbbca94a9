package main

import (
	"archive/zip"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/lab/gateways"
)

// ledgerOf is a folder's ledger, verified by today's program: the hashes of its entries.
func ledgerOf(t *testing.T, state string) (hashes []string) {
	t.Helper()
	code, out, stderr := runCLI(t, "privacy", "ledger", "--json", state)
	if code != 0 {
		t.Fatalf("the ledger: %d\n%s", code, stderr)
	}
	return hashesOf(t, []byte(out))
}

func hashesOf(t *testing.T, ledger []byte) (hashes []string) {
	t.Helper()
	var l struct {
		Entries []struct{ Hash string }
	}
	if err := json.Unmarshal(ledger, &l); err != nil {
		t.Fatalf("%v: %s", err, ledger)
	}
	for _, e := range l.Entries {
		hashes = append(hashes, e.Hash)
	}
	return hashes
}

// TestUpgrade: each folder of a job that an earlier program was killed in (testdata/upgrade,
// with the script that made them) is today's: its ledger verifies with the hashes that the
// earlier program gave it, a backup that is put back continues with the devices that were
// enrolled, and the job ends with every round in the ledger once.
func TestUpgrade(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "upgrade", "*", "folder.zip"))
	if err != nil || len(folders) < 2 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(filepath.Dir(folder)), func(t *testing.T) { upgrade(t, folder) })
	}
}

// golden is what make.sh or fleet.sh packed.
func golden(t *testing.T, folder string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	z, err := zip.OpenReader(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	return dir
}

// backUp copies a folder, and its stores as docs/OPERATE.md says.
func backUp(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	var stores []string
	if err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(d.Name(), "starling.db") {
			return err
		}
		if d.Name() == "starling.db" {
			stores = append(stores, path)
		}
		return os.Remove(path)
	}); err != nil {
		t.Fatal(err)
	}
	for _, path := range stores {
		within, err := filepath.Rel(to, path)
		if err != nil {
			t.Fatal(err)
		}
		copyStore(t, filepath.Join(from, within), path)
	}
	// Else serve says that others may read it.
	if err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		mode := os.FileMode(0o600)
		if err == nil && d.IsDir() {
			mode = 0o700
		}
		return errors.Join(err, os.Chmod(path, mode))
	}); err != nil {
		t.Fatal(err)
	}
}

// copyStore copies a store that may be in use: as documented, or by the same engine's other way where
// sqlite3 is not installed.
func copyStore(t *testing.T, from, to string) {
	t.Helper()
	if tool, err := exec.LookPath("sqlite3"); err == nil {
		out, err := exec.CommandContext(watchdog.Context(t), tool, from, fmt.Sprintf(".backup '%s'", to)).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Fatalf("sqlite3: %v: %s", err, out)
		}
		return
	}
	t.Log("sqlite3 is not installed (Debian: sqlite3): backed up by VACUUM INTO")
	db, err := sql.Open("sqlite", from)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`VACUUM INTO ?`, to)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// returning starts the devices of a folder that was unpacked, again.
func returning(t *testing.T, binary, dir string, tokens ...string) (devices []*process) {
	t.Helper()
	data := filepath.Join(dir, "data")
	if code, _, stderr := runCLI(t, "lab", "invoices", "--out", data, "--clients", "3"); code != 0 {
		t.Fatal(stderr)
	}
	for i := range 3 {
		identity := filepath.Join(dir, fmt.Sprintf("id%d.pem", i))
		if err := os.Chmod(identity, 0o600); err != nil {
			t.Fatal(err)
		}
		devices = append(devices, start(t, binary, append(append([]string{"join", "--trust-local"}, tokens...), "--data", filepath.Join(data, fmt.Sprintf("train-%d.jsonl", i)), "--shard", "2",
			"--identity", identity, "--cache", filepath.Join(dir, "cache"), "--accounts", filepath.Join(dir, "accounts"))...))
	}
	return devices
}

func upgrade(t *testing.T, folder string) {
	dir := golden(t, folder)
	state, restored := filepath.Join(dir, "state"), filepath.Join(dir, "restored")
	given, err := os.ReadFile(filepath.Join(dir, "ledger.json"))
	if err != nil {
		t.Fatal(err)
	}
	before := hashesOf(t, given)
	if got := ledgerOf(t, state); len(before) < 2 || !slices.Equal(got, before) {
		t.Fatalf("today's ledger is %v, the earlier program's %v", got, before)
	}
	backUp(t, state, restored)

	binary := build(t)
	serve := start(t, binary, "serve", "--job", filepath.Join(dir, "job.yaml"), "--dir", restored, "--listen", "127.0.0.1:0", "--json")
	token := serve.await(t, `join with: starling join (\S+)`)[1]
	devices := returning(t, binary, dir, token)
	for i, d := range devices {
		if err := d.end(); err != nil {
			t.Errorf("device %d: %v\n%s", i, err, d.said())
		}
	}
	if err := serve.end(); err != nil {
		t.Fatalf("serve: %v\n%s", err, serve.said())
	}
	var result struct {
		Rounds int `json:"rounds"`
	}
	if err := json.Unmarshal(serve.out.Bytes(), &result); err != nil || result.Rounds != 4 {
		t.Errorf("%d rounds of 4 are made: %v\n%s", result.Rounds, err, serve.out.Bytes())
	}
	after := ledgerOf(t, restored)
	if len(after) < 4 || !slices.Equal(after[:len(before)], before) {
		t.Errorf("the ledger is %v, and was %v", after, before)
	}
	slices.Sort(after)
	if len(slices.Compact(after)) < 4 {
		t.Errorf("entries of the ledger are the same: %v", after)
	}
}

// TestUpgradeFleet: the folder of a server of several jobs that an earlier program was killed in is
// today's. The fleet's ledger and each job's verify with the heads and hashes of before; a backup of
// them, put back, continues with the devices that were enrolled until both jobs are over, and what the
// fleet's ledger charges their own do, once.
func TestUpgradeFleet(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "upgrade", "*", "fleet.zip"))
	if err != nil || len(folders) == 0 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(filepath.Dir(folder)), func(t *testing.T) { upgradeFleet(t, folder) })
	}
}

// fleetLedger is what starling job ledger --json says of a fleet.
type fleetLedger struct {
	Epsilon float64
	Head    string
	Entries []json.RawMessage
}

func upgradeFleet(t *testing.T, folder string) {
	dir, jobs := golden(t, folder), []string{"first", "second"}
	state, restored := filepath.Join(dir, "state"), filepath.Join(dir, "restored")
	parsed := func(text []byte) (l fleetLedger) {
		t.Helper()
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return l
	}
	given, err := os.ReadFile(filepath.Join(dir, "ledger.json"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(state string) fleetLedger {
		t.Helper()
		code, out, stderr := runCLI(t, "job", "ledger", "--json", "--dir", state)
		if code != 0 {
			t.Fatalf("the fleet's ledger: %d\n%s", code, stderr)
		}
		return parsed([]byte(out))
	}
	before := parsed(given)
	if l := of(state); len(before.Entries) < 4 || l.Head != before.Head || len(l.Entries) != len(before.Entries) || l.Epsilon != before.Epsilon {
		t.Fatalf("the fleet's ledger is %+v, and was %+v", l, before)
	}
	was := map[string][]string{}
	for _, name := range jobs {
		given, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		was[name] = hashesOf(t, given)
		if got := ledgerOf(t, filepath.Join(state, "jobs", name)); len(got) == 0 || !slices.Equal(got, was[name]) {
			t.Fatalf("today's ledger of %s is %v, the earlier program's %v", name, got, was[name])
		}
	}
	backUp(t, state, restored)
	if l := of(restored); l.Head != before.Head {
		t.Fatalf("the backup's head is %s, and not %s", l.Head, before.Head)
	}

	binary := build(t)
	serve := start(t, binary, "serve", "--dir", restored, "--listen", "127.0.0.1:0", "--log", "text")
	var tokens []string
	for range jobs {
		tokens = append(tokens, serve.await(t, `^job \w+: join with: starling join (\S+)`)[1])
	}
	devices := returning(t, binary, dir, tokens...)
	for range jobs {
		serve.await(t, `msg="job over".*state=finished`)
	}
	for i, d := range devices {
		if err := d.end(); err != nil {
			t.Errorf("device %d: %v\n%s", i, err, d.said())
		}
	}
	l := of(restored)
	if l.Epsilon != before.Epsilon || len(l.Entries) <= len(before.Entries) || !slices.EqualFunc(l.Entries[:len(before.Entries)], before.Entries,
		func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		t.Errorf("the fleet's ledger is %+v, and was %+v", l, before)
	}
	for _, name := range jobs {
		now := ledgerOf(t, filepath.Join(restored, "jobs", name))
		if len(now) < 4 || !slices.Equal(now[:len(was[name])], was[name]) {
			t.Errorf("the ledger of %s is %v, and was %v", name, now, was[name])
		}
		own, err := store.ReadLedger(filepath.Join(restored, "jobs", name))
		if err != nil {
			t.Fatal(err)
		}
		if released, open, err := gateways.Agree(own, ofJob(t, l, name)); err != nil || released != 4 || len(open) > 0 {
			t.Errorf("%s: %d rounds are released, %v never ended: %v", name, released, open, err)
		}
	}
}

// ofJob is the part of a fleet's ledger that is a job's.
func ofJob(t *testing.T, l fleetLedger, name string) []byte {
	t.Helper()
	l.Entries = slices.DeleteFunc(slices.Clone(l.Entries), func(e json.RawMessage) bool {
		var of struct{ Job string }
		if err := json.Unmarshal(e, &of); err != nil {
			t.Fatal(err)
		}
		return of.Job != name
	})
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
