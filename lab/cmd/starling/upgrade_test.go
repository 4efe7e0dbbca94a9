package main

import (
	"archive/zip"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
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
// earlier program gave it, a backup that is put back goes on with the devices that were
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

func upgrade(t *testing.T, folder string) {
	dir := t.TempDir()
	z, err := zip.OpenReader(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	state, restored := filepath.Join(dir, "state"), filepath.Join(dir, "restored")
	given, err := os.ReadFile(filepath.Join(dir, "ledger.json"))
	if err != nil {
		t.Fatal(err)
	}
	before := hashesOf(t, given)
	if got := ledgerOf(t, state); len(before) < 2 || !slices.Equal(got, before) {
		t.Fatalf("today's ledger is %v, the earlier program's %v", got, before)
	}
	// As docs/OPERATE.md says, with what sqlite3 makes of its .backup: a whole store without a log.
	if err := os.CopyFS(restored, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"starling.db", "starling.db-wal", "starling.db-shm"} {
		if err := os.Remove(filepath.Join(restored, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(state, "starling.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`VACUUM INTO ?`, filepath.Join(restored, "starling.db")); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	// Else serve says that others may read it.
	if err := filepath.WalkDir(restored, func(path string, d os.DirEntry, err error) error {
		mode := os.FileMode(0o600)
		if err == nil && d.IsDir() {
			mode = 0o700
		}
		return errors.Join(err, os.Chmod(path, mode))
	}); err != nil {
		t.Fatal(err)
	}

	binary, data := build(t), filepath.Join(dir, "data")
	if code, _, stderr := runCLI(t, "invoices", "--out", data, "--clients", "3"); code != 0 {
		t.Fatal(stderr)
	}
	serve := start(t, binary, "serve", "--job", filepath.Join(dir, "job.yaml"), "--dir", restored, "--listen", "127.0.0.1:0", "--json")
	token := serve.await(t, `join with: starling join (\S+)`)[1]
	var devices []*process
	for i := range 3 {
		identity := filepath.Join(dir, fmt.Sprintf("id%d.pem", i))
		if err := os.Chmod(identity, 0o600); err != nil {
			t.Fatal(err)
		}
		devices = append(devices, start(t, binary, "join", token, "--data", filepath.Join(data, fmt.Sprintf("train-%d.jsonl", i)), "--shard", "2",
			"--identity", identity, "--cache", filepath.Join(dir, "cache"), "--accounts", filepath.Join(dir, "accounts")))
	}
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
