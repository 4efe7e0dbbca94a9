package store

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/testkit/postgrestest"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

var (
	server  *postgrestest.Server // nil: folders are SQLite's
	schemas atomic.Int64
)

// ofSQLite are tests of its files: of images of them, of their modes, and of what programs
// wrote from before there was another database.
const ofSQLite = `^(TestCrashAtEveryPoint|TestCrashWhileEnrolling|TestAnOldFolderGetsALog|TestActsAreChained|TestStoreOfSchema2|TestLedgerOfAnotherSchema|TestOneWriter|TestReadLedgerBesideARunningCoordinator|TestHostileReaderOfTheFolder|Benchmark.*)$`

// both runs the tests over SQLite, and those that are not of its files over PostgreSQL.
func both(m *testing.M) int {
	if code := m.Run(); code != 0 {
		return code
	}
	var err error
	switch server, err = postgrestest.Start(); {
	case errors.Is(err, postgrestest.ErrAbsent):
		fmt.Println("SKIPPED over PostgreSQL:", err)
		return 0
	case err != nil:
		fmt.Println(err)
		return 1
	}
	fmt.Println("and over PostgreSQL")
	err = errors.Join(flag.Set("test.skip", ofSQLite), flag.Set("test.bench", ""))
	code := m.Run()
	if err = errors.Join(err, server.Stop()); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

// folder is an empty folder of a store.
func folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if server != nil {
		ok(t, UseDatabase(dir, fmt.Sprintf("%s&schema=t%d", server.URL(), schemas.Add(1))))
	}
	return dir
}

// behind is a folder's database without its store.
func behind(t *testing.T, dir string) *database {
	t.Helper()
	p, err := placeOf(dir)
	ok(t, err)
	db, err := p.open(writing)
	ok(t, err)
	db.SetMaxOpenConns(1) // what is set of a session is set of all
	t.Cleanup(func() { db.Close() })
	if db.postgres {
		_, err = db.Exec(`CREATE FUNCTION zeroblob(n INTEGER) RETURNS BYTEA LANGUAGE sql AS $$ SELECT decode(repeat('00', n), 'hex') $$`)
		ok(t, err)
	}
	return db
}

// unguarded is what lets anything be written to tables that are append-only.
func unguarded(d *database, tables ...string) []string {
	if d.postgres {
		return []string{`SET session_replication_role = replica`}
	}
	out := []string{`PRAGMA foreign_keys=0`}
	for _, table := range tables {
		out = append(out, `DROP TRIGGER `+table+`_update`, `DROP TRIGGER `+table+`_delete`)
	}
	return out
}

// TestKeep: a folder's state lies in one place.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	const url = "postgres://starling:secret@db.example.org/fl?schema=one"
	for _, bad := range []string{"", "mysql://x@y/z", "postgres://x@y/z?schema=Upper", "postgres://x@y/z?schema=a%22b", "postgres://x@y:port/z", "postgres://x@y/z?sslmode=maybe"} {
		if err := UseDatabase(dir, bad); !errors.Is(err, ErrRequest) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	ok(t, UseDatabase(dir, url))
	ok(t, UseDatabase(dir, url))
	if err := UseDatabase(dir, url+"2"); !errors.Is(err, ErrRequest) {
		t.Errorf("another database: %v", err)
	}
	for below, want := range map[string]string{"": "one", "fleet": "one/fleet", "jobs/mail": "one/jobs/mail"} {
		p, err := placeOf(filepath.Join(dir, below))
		if err != nil || p.schema != want || p.root != "one" {
			t.Errorf("%s: %+v, %v", below, p, err)
		}
	}
	for _, outside := range []string{"other", "jobs/mail/more", "more/fleet"} {
		if p, err := placeOf(filepath.Join(dir, outside)); err != nil || p.server != "" {
			t.Errorf("%s: %+v, %v", outside, p, err)
		}
	}
	ok(t, os.Chmod(filepath.Join(dir, URLFile), 0o644))
	if _, err := placeOf(dir); !errors.Is(err, ErrMode) {
		t.Errorf("a password that others can read: %v", err)
	}
	full := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(full, FileName), nil, 0o600))
	if err := UseDatabase(full, url); !errors.Is(err, ErrRequest) {
		t.Errorf("a folder with a state: %v", err)
	}
}

// heir opens a folder of its own over the same database, as another machine would.
func heir(t *testing.T, of string, opt Options) (*Store, error) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(of, URLFile))
	ok(t, err)
	dir := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, URLFile), b, 0o600))
	return Open(dir, opt)
}

// TestLease: one coordinator at a time holds a database; one that ends gives it back, one
// that is paused loses it, and whatever that one had under way it writes nothing any more.
func TestLease(t *testing.T) {
	if server == nil {
		return // beside a file the system's lock says who lives
	}
	dir := folder(t)
	first := open(t, dir)
	if _, err := heir(t, dir, options()); !errors.Is(err, ErrLeased) {
		t.Fatalf("a second one: %v", err)
	}
	ok(t, first.Close())
	second, err := heir(t, dir, options())
	ok(t, err)
	t.Cleanup(func() { second.Close() })
	commit(t, second, 1)
	id := begin(t, second, 1)
	ok(t, second.PersistIntent(event(id, dp.KindRelease)))

	if !second.Holds() {
		t.Error("who renews its lease is not sure of it")
	}

	// It is paused, with an unmasked sum in hand: nothing renews its lease.
	close(second.stop)
	second.renewing.Wait()
	second.stop = nil
	third, err := heir(t, dir, options())
	for errors.Is(err, ErrLeased) && watchdog.Context(t).Err() == nil {
		time.Sleep(20 * time.Millisecond)
		third, err = heir(t, dir, options())
	}
	ok(t, err)
	t.Cleanup(func() { third.Close() })
	if second.Holds() || !third.Holds() {
		t.Errorf("who lost the lease is sure of it: %v; who has it: %v", second.Holds(), third.Holds())
	}
	if len(third.Recovered()) != 1 {
		t.Errorf("recovered %q", third.Recovered())
	}
	for name, err := range map[string]error{
		"commit":  errOf(second.Commit(event(id, dp.KindRelease), note(id), Checkpoint{Version: 2, Round: id})),
		"charge":  errOf(second.Charge(event(id, dp.KindRelease), note(id))),
		"begin":   errOf(second.BeginRound(Round{Certificate: cert})),
		"enrol":   errOf(second.Enrol([32]byte{1}, 0)),
		"journal": second.Journal(id, "x", ""),
		"spend":   second.Spend(&Spent{By: map[string]*Bought{}}, Spending{Act: SpendBudget}),
	} {
		if !errors.Is(err, ErrFenced) {
			t.Errorf("%s by one whose lease ran out: %v", name, err)
		}
	}
	// It comes back, and is told.
	stop := make(chan struct{})
	defer close(stop)
	go second.renew(stop)
	watchdog.Wait(t, "the word that the lease is lost", func() { <-second.Lost() })
	l, err := third.Ledger()
	if err != nil || len(l.Entries) != 2 || l.Entries[1].Event.Kind != dp.KindCharged {
		t.Errorf("%+v, %v", l.Entries, err)
	}
}

// TestStandsBy: the holder of a lease learns that another coordinator waits for it, as long as that one could serve.
func TestStandsBy(t *testing.T) {
	if server == nil {
		return
	}
	dir := folder(t)
	first := open(t, dir)
	if first.StandsBy() {
		t.Error("somebody stands by before anybody waits")
	}
	wait := func(fit bool) (end func()) {
		ctx, stop := context.WithCancel(watchdog.Context(t))
		asked, over := make(chan struct{}, 100), make(chan error, 1)
		go func() {
			over <- AwaitLease(ctx, dir, func() bool { asked <- struct{}{}; return fit }, func() {})
		}()
		<-asked
		<-asked // the first answer has been acted on
		return func() {
			stop()
			if err := <-over; !errors.Is(err, context.Canceled) {
				t.Errorf("waiting ended by %v", err)
			}
		}
	}
	end := wait(false)
	if first.StandsBy() {
		t.Error("one that could not serve stands by")
	}
	end()
	end = wait(true)
	if !first.StandsBy() {
		t.Error("nobody stands by")
	}
	end()
	ok(t, setStandby(first, 2*LeaseTerm))
	if first.StandsBy() {
		t.Error("one that fell silent stands by")
	}
}

// setStandby has another coordinator wait for the lease for the last time so long ago.
func setStandby(s *Store, ago time.Duration) error {
	_, err := s.db.Exec(`UPDATE meta SET value = (`+leaseNow+` - $1)::text WHERE key = 'standby'`, ago.Seconds())
	return err
}

// TestLeaseOfAFleetsJobs: who does not hold the fleet opens none of its jobs, and writes in
// none that was open.
func TestLeaseOfAFleetsJobs(t *testing.T) {
	if server == nil {
		return
	}
	dir := folder(t)
	first, err := OpenShared(dir)
	ok(t, err)
	t.Cleanup(func() { first.Close() })
	job := filepath.Join(dir, "jobs", "mail")
	hosted := func(fence string) (*Store, error) {
		opt := options()
		opt.Hosted, opt.Fence = true, fence
		return Open(job, opt)
	}
	mine, err := hosted(first.Fence())
	ok(t, err)
	commit(t, mine, 1)
	ok(t, mine.lock.release()) // the heir is on another machine

	ok(t, first.giveBack())
	ok(t, first.lock.release())
	second, err := OpenShared(dir)
	ok(t, err)
	t.Cleanup(func() { second.Close() })
	if _, err := hosted(first.Fence()); !errors.Is(err, ErrFenced) {
		t.Errorf("a job was opened by who lost the fleet: %v", err)
	}
	commit(t, mine, 2) // until the heir has opened it
	its, err := hosted(second.Fence())
	ok(t, err)
	t.Cleanup(func() { its.Close() })
	if _, err := mine.BeginRound(Round{Version: 2, Certificate: cert}); !errors.Is(err, ErrFenced) {
		t.Errorf("a round of who lost the fleet: %v", err)
	}
	commit(t, its, 3)
}

// TestRestart: transactions begin again once the server is back.
func TestRestart(t *testing.T) {
	if server == nil {
		return
	}
	s := open(t, folder(t))
	commit(t, s, 1)
	done := make(chan error)
	go func() { done <- server.Restart() }()
	ok(t, <-done)
	commit(t, s, 2)
	go func() { done <- server.Restart() }()
	for range 20 { // while it is away, too: what fails was not written, or is refused the second time
		if _, err := s.Enrol([32]byte{7}, 0); err != nil {
			t.Log(err)
		}
	}
	ok(t, <-done)
	if known, err := s.Knows([32]byte{7}); err != nil || !known {
		t.Errorf("%v, %v", known, err)
	}
	if l, err := s.Ledger(); err != nil || len(l.Entries) != 2 {
		t.Errorf("%+v, %v", l.Entries, err)
	}
}
