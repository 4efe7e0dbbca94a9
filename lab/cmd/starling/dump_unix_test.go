//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/lab/gateways"
	"github.com/starling-fl/starling/lab/loadtest"
)

// TestDumpAndRestore: a database is dumped as docs/OPERATE.md says, in the middle of a job, and
// restored into another one of the same server. Both kinds of ledger verify there as they did, a
// server over the copy continues with the devices that were enrolled, and every round that the job ends
// with is charged once.
func TestDumpAndRestore(t *testing.T) {
	for _, tool := range []string{"pg_dump", "psql"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed (Debian: postgresql-client)")
		}
	}
	const devices, rounds = 6, 30
	s := newService(t, devices, rounds)
	address := freePort(t)
	owner := func(i int, database string) *process {
		return start(t, s.binary, "serve", "--dir", s.folder(i), "--store", database, "--listen", address, "--url", "http://"+address, "--log", "text")
	}
	run := func(name string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(watchdog.Context(t), name, args...)
		out, err := cmd.Output()
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			t.Fatalf("%s: %v\n%s", name, err, failed.Stderr)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return out
	}
	fleet := func(i int) (l fleetLedger, text []byte) {
		t.Helper()
		text = run(s.binary, "job", "ledger", "--json", "--dir", s.folder(i))
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		return l, text
	}
	own := func(i int) store.Ledger {
		t.Helper()
		l, err := store.ReadLedger(filepath.Join(s.folder(i), "jobs", "load"))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}

	first := owner(0, s.database.URL())
	token := s.submit(first)
	played, ended := play(t, loadtest.Config{Devices: devices}, token)
	s.more("the first round")
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.end(); first.cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Fatalf("%v\n%s", err, first.said())
	}
	wasFleet, _ := fleet(0)
	was := own(0)

	from, err := url.Parse(s.database.URL())
	if err != nil {
		t.Fatal(err)
	}
	to := *from
	to.Path = "/restored"
	run("psql", "--quiet", "--dbname", from.String(), "--command", "CREATE DATABASE restored")
	dump := filepath.Join(t.TempDir(), "dump.sql")
	run("pg_dump", "--schema=starling*", "--file", dump, from.String())
	run("psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--single-transaction", "--dbname", to.String(), "--file", dump)
	if info, err := os.Stat(dump); err != nil || info.Size() == 0 {
		t.Fatal(info, err)
	}

	second := owner(1, to.String())
	second.await(t, "listening on")
	if l, _ := fleet(1); len(l.Entries) < len(wasFleet.Entries) || len(wasFleet.Entries) == 0 || l.Epsilon != wasFleet.Epsilon {
		t.Errorf("the fleet's ledger is %+v, and was %+v", l, wasFleet)
	}
	second.await(t, `msg="job over".*state=finished`)
	watchdog.Wait(t, "the devices' end", ended)
	if r := played.Report(); r.Finished != devices {
		t.Errorf("%+v", r)
	}
	l, text := fleet(1)
	for i, e := range wasFleet.Entries {
		if i >= len(l.Entries) || string(l.Entries[i]) != string(e) {
			t.Fatalf("entry %d of the fleet's ledger was %s in the database that was dumped", i+1, e)
		}
	}
	now := own(1)
	for i, e := range was.Entries {
		if i >= len(now.Entries) || now.Entries[i].Hash != e.Hash {
			t.Fatalf("entry %d of the job's ledger is another one", i+1)
		}
	}
	released, open, err := gateways.Agree(now, text)
	if err != nil || released != rounds || len(open) > 0 {
		t.Errorf("%d rounds were released, %v never ended: %v", released, open, err)
	}
	if l, _ := fleet(0); l.Head != wasFleet.Head {
		t.Error("the database that was dumped was changed")
	}
}
