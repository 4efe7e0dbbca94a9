package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/dp"
)

var job = [32]byte{1, 2, 3}

func options() Options {
	return Options{Task: "t", Job: job, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }, term: time.Second}
}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, options())
	for end := time.Now().Add(10 * time.Second); errors.Is(err, ErrLeased) && time.Now().Before(end); s, err = Open(dir, options()) {
		time.Sleep(20 * time.Millisecond) // of one that was killed
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

const b2 = 175_000

var cert = dp.Certificate{Method: dp.MethodPoisson, Generator: "test", Rate: 1, Population: 24, Nonce: [32]byte{9}}

// event is a simulated release as dp makes it.
func event(round uint64, k dp.Kind) dp.Event {
	ev, err := dp.ReleaseSpec{Round: round, SamplingRate: 1, B2: b2, NoiseMultiplier: 0.8, NoiseScale: 0.0024,
		SimulatedRate: 0.01, Certificate: cert.Hash()}.Event(8192)
	if err != nil {
		panic(err)
	}
	ev.Kind = k
	return ev
}

func note(round uint64) Note {
	return Note{Guarantees: dp.Guarantees{
		Simulated: &dp.Guarantee{Epsilon: float64(round), Delta: 1e-6, Simulated: true}, Delivered: &dp.Guarantee{Epsilon: 1e5},
	}}
}

func begin(t *testing.T, s *Store, version uint64) uint64 {
	t.Helper()
	id, err := s.BeginRound(Round{Version: version, Rank: 3, Certificate: cert})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func commit(t *testing.T, s *Store, version uint64) uint64 {
	t.Helper()
	id := begin(t, s, version-1)
	if err := s.PersistIntent(event(id, dp.KindRelease)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(event(id, dp.KindRelease), note(id), Checkpoint{Version: version, Round: id, Adapter: []byte{byte(version)}, Optimizer: []byte("o")}); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestResume(t *testing.T) {
	dir := folder(t)
	s := open(t, dir)
	commit(t, s, 1)
	id := begin(t, s, 1)
	if err := s.Abandon(id, "too few"); err != nil {
		t.Fatal(err)
	}
	commit(t, s, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, dir)
	if r := s.Recovered(); len(r) != 0 {
		t.Errorf("recovered after a clean close: %q", r)
	}
	c, err := s.Last()
	if err != nil || c.Version != 2 || c.Round != 3 || !bytes.Equal(c.Adapter, []byte{2}) || string(c.Optimizer) != "o" {
		t.Fatalf("last checkpoint %+v, %v", c, err)
	}
	l, err := s.Ledger()
	if err != nil || len(l.Entries) != 2 || l.Entries[1].Event.Round != 3 || l.Head != l.Entries[1].Hash || c.Ledger != l.Head {
		t.Fatalf("ledger %+v, %v", l, err)
	}
	if got := l.Entries[1].Cohort; got.Population != 24 || got.Nonce != [32]byte{} {
		t.Errorf("certificate came back as %+v", got)
	}
	if got := l.Entries[1].Simulated; got == nil || got.Epsilon != 3 || !got.Simulated {
		t.Errorf("simulated guarantee came back as %+v", got)
	}
	if id := begin(t, s, 2); id != 4 {
		t.Errorf("next round is %d, want 4", id)
	}
}

func TestReadLedgerBesideARunningCoordinator(t *testing.T) {
	dir := folder(t)
	if _, err := ReadLedger(dir); !errors.Is(err, ErrNoStore) {
		t.Fatalf("empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	commit(t, s, 1)
	l, err := ReadLedger(dir)
	if err != nil || l.Task != "t" || len(l.Entries) != 1 {
		t.Fatalf("while open: %+v, %v", l, err)
	}
	if len(l.HeadString()) != 64 {
		t.Errorf("head %q", l.HeadString())
	}
	commit(t, s, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = ReadLedger(dir); err != nil || len(l.Entries) != 2 {
		t.Fatalf("after close: %+v, %v", l, err)
	}
	other := folder(t)
	if err := os.WriteFile(filepath.Join(other, FileName), []byte("not a database, but long enough to be read as one........"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLedger(other); err == nil {
		t.Error("a file of text was read as a ledger")
	}
}

// The clip norm is part of what the digest holds: a restart must not train on
// with another one.
func TestDamagedClipNorm(t *testing.T) {
	s := open(t, folder(t))
	defer s.Close()
	commit(t, s, 1)
	if _, err := s.db.Exec(`UPDATE checkpoint SET clip_norm = clip_norm + 1`); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Last(); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("%+v, %v", c, err)
	}
}

// A ledger of a program before this one is still an account of what was spent,
// though the store cannot go on. One of a program to come is refused by its number.
func TestLedgerOfAnotherSchema(t *testing.T) {
	dir := folder(t)
	s := open(t, dir)
	commit(t, s, 1)
	for _, change := range []string{`ALTER TABLE checkpoint DROP COLUMN clip_norm`, `UPDATE meta SET value = '1' WHERE key = 'schema'`} {
		if _, err := s.db.Exec(change); err != nil {
			t.Fatal(err)
		}
	}
	if l, err := ReadLedger(dir); err != nil || len(l.Entries) != 1 {
		t.Errorf("schema 1: %+v, %v", l, err)
	}
	if _, err := s.db.Exec(`UPDATE meta SET value = '5' WHERE key = 'schema'`); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLedger(dir); err == nil || errors.Is(err, ErrNoStore) || !strings.Contains(err.Error(), `schema "5"`) {
		t.Errorf("schema 5: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, options()); err == nil || !strings.Contains(err.Error(), `schema "5", this program knows 2 to 4`) {
		t.Errorf("schema 5 to go on with: %v", err)
	}
}

func TestOneWriter(t *testing.T) {
	dir := folder(t)
	s := open(t, dir)
	if _, err := Open(dir, options()); !errors.Is(err, ErrLocked) {
		t.Fatalf("second coordinator: %v", err)
	}
	// A file system whose locks do not work: the second coordinator gets in, and
	// the first can write no more.
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	for name, err := range map[string]error{
		"enrol":   errOf(s.Enrol([32]byte{1}, 0)),
		"begin":   errOf(s.BeginRound(Round{Certificate: cert})),
		"journal": s.Journal(1, "x", ""),
		"charge":  errOf(s.Charge(event(1, dp.KindCharged), Note{})),
	} {
		if !errors.Is(err, ErrFenced) {
			t.Errorf("%s by the first coordinator: %v", name, err)
		}
	}
	commit(t, second, 1)
}

func errOf[T any](_ T, err error) error { return err }

func TestOtherJob(t *testing.T) {
	dir := folder(t)
	s := open(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	opt := options()
	opt.Job[0]++
	if _, err := Open(dir, opt); !errors.Is(err, ErrOtherJob) {
		t.Fatalf("another job: %v", err)
	}
}

// A folder says which key of its job was changed; one of before says that it cannot, and
// can from the next start with the same job on.
func TestOtherJobSaysWhatChanged(t *testing.T) {
	dir := folder(t)
	start := func(job byte, given, derived map[string]string) error {
		opt := options()
		opt.Job[0], opt.Terms = job, Terms{Given: given, Derived: derived}
		s, err := Open(dir, opt)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	was := map[string]string{"rank": "8", "base": "a"}
	follows := map[string]string{"rank": "8", "base": "a", "clip": "2"}
	if err := start(1, nil, nil); err != nil {
		t.Fatal(err)
	}
	said := func(what string, want string, err error) {
		t.Helper()
		if !errors.Is(err, ErrOtherJob) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	said("of before", "earlier version began it and did not store the job's keys", start(2, was, follows))
	if err := start(1, was, follows); err != nil {
		t.Fatal(err)
	}
	said("a key", ": rank: 8 in the folder, 16 in the file. Put it back", start(2, map[string]string{"rank": "16", "base": "a"}, map[string]string{"rank": "16", "base": "a", "clip": "3"}))
	said("a key that followed", ": clip: 2 (which follows) in the folder, 5 in the file. ", start(2, map[string]string{"rank": "8", "base": "a", "clip": "5"}, map[string]string{"rank": "8", "base": "a", "clip": "5"}))
	said("a key that is gone", ": rank: 8 in the folder, not set in the file. ", start(2, map[string]string{"base": "a"}, map[string]string{"base": "a", "clip": "2"}))
	said("what follows alone", ": clip: 2 (which follows) in the folder, 7 (which follows) in the file. ", start(2, was, map[string]string{"rank": "8", "base": "a", "clip": "7"}))
	said("nothing", "no key of it changed, but what this version makes of them", start(2, was, follows))
	many, long := map[string]string{}, strings.Repeat("ä", 1000)
	for i := range 100 {
		many[strings.Repeat("k", i+1)] = long
	}
	if err := start(2, many, many); !errors.Is(err, ErrOtherJob) || len(err.Error()) > 2500 || !strings.Contains(err.Error(), "and 94 more") {
		t.Errorf("many: %v", err)
	}
	if err := start(1, was, follows); err != nil {
		t.Errorf("put back: %v", err)
	}
}

func TestIdentities(t *testing.T) {
	dir := folder(t)
	opt := options()
	opt.MaxIdentities = 2
	s, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, want := range []struct {
		key   byte
		added bool
	}{{5, true}, {5, false}, {4, true}} {
		added, err := s.Enrol([32]byte{want.key}, 0)
		if err != nil || added != want.added {
			t.Fatalf("enrol %d: %v, %v", i, added, err)
		}
	}
	if _, err := s.Enrol([32]byte{9}, 0); !errors.Is(err, ErrFull) {
		t.Errorf("beyond the limit: %v", err)
	}
	if added, err := s.Enrol([32]byte{4}, 0); err != nil || added {
		t.Errorf("a known identity when full: %v, %v", added, err)
	}
	keys, err := s.Enrolled()
	if err != nil || len(keys) != 2 || keys[0] != [32]byte{5} || keys[1] != [32]byte{4} {
		t.Errorf("enrolled %v, %v", keys, err)
	}
}

func TestSecret(t *testing.T) {
	dir := folder(t)
	s := open(t, dir)
	a, err := s.Secret("authority", func() ([]byte, error) { return []byte{1, 2}, nil })
	if err != nil || !bytes.Equal(a, []byte{1, 2}) {
		t.Fatal(a, err)
	}
	b, err := s.Secret("authority", func() ([]byte, error) { return nil, errors.New("asked again") })
	if err != nil || !bytes.Equal(a, b) {
		t.Fatal(b, err)
	}
	want := errors.New("no entropy")
	if _, err := s.Secret("other", func() ([]byte, error) { return nil, want }); !errors.Is(err, want) {
		t.Error(err)
	}
}

func TestRoundRules(t *testing.T) {
	s := open(t, folder(t))
	id := begin(t, s, 0)
	if err := s.PersistSurvivors(id, map[int][]byte{0: {1}, 1: {2}}); err != nil {
		t.Fatal(err)
	}
	if err := s.PersistSurvivors(id, map[int][]byte{1: {3}}); err == nil {
		t.Error("a shard's survivor set was written twice")
	}
	if err := s.PersistIntent(event(id, dp.KindRelease)); err != nil {
		t.Fatal(err)
	}
	if err := s.PersistIntent(event(id, dp.KindRelease)); err == nil {
		t.Error("an intent was written twice")
	}
	if err := s.Abandon(id, "x"); err == nil {
		t.Error("a round with an intent was abandoned free of charge")
	}
	c := Checkpoint{Version: 1, Round: id}
	if _, err := s.Commit(event(id, dp.KindCharged), note(id), c); err == nil {
		t.Error("a checkpoint was paid by a charge")
	}
	if _, err := s.Commit(event(id+1, dp.KindRelease), note(id), c); err == nil {
		t.Error("a checkpoint was paid by another round")
	}
	if _, err := s.Commit(event(id, dp.KindRelease), note(id), Checkpoint{Version: 2, Round: id}); err == nil {
		t.Error("version 2 was committed before 1")
	}
	if l, err := s.Ledger(); err != nil || len(l.Entries) != 0 {
		t.Fatalf("a refused commit left an entry: %+v, %v", l, err)
	}
	if _, err := s.Commit(event(id, dp.KindNoiseOnly), note(id), c); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Charge(event(id, dp.KindCharged), Note{Reason: "again"}); !errors.Is(err, ErrCharged) {
		t.Errorf("charged twice: %v", err)
	}
	if _, err := s.Commit(event(id, dp.KindRelease), note(id), Checkpoint{Version: 2, Round: id}); !errors.Is(err, ErrCharged) {
		t.Errorf("committed twice: %v", err)
	}
	if err := s.Abandon(id, "x"); err == nil {
		t.Error("a committed round was abandoned")
	}
	id = begin(t, s, 1)
	if e, err := s.Charge(event(id, dp.KindRelease), Note{Reason: "alarm"}); err != nil || e.Event.Kind != dp.KindCharged || e.Seq != 1 || e.Reason != "alarm" {
		t.Fatalf("charge: %+v, %v", e, err)
	}
	lines, err := s.Lines()
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, l := range lines {
		states = append(states, l.State)
	}
	if got := strings.Join(states, " "); got != "confirming unmasking committed charged" {
		t.Errorf("journal: %s", got)
	}
}

// TestStoreOfSchema2: what was made before rolls had a key is gone on with, and
// its certificates still verify.
func TestStoreOfSchema2(t *testing.T) {
	dir := folder(t)
	s := open(t, dir)
	for _, change := range []string{
		`DROP INDEX identity_excluded`, `DROP INDEX identity_by_seen`, `ALTER TABLE identity DROP COLUMN seen`, `ALTER TABLE identity DROP COLUMN invitation`,
		`ALTER TABLE identity DROP COLUMN excluded`, `DROP TABLE strike`, `DROP TABLE invitation`,
		`DELETE FROM meta WHERE key IN ('promise', 'delta')`, `UPDATE meta SET value = '2' WHERE key = 'schema'`,
		`INSERT INTO identity (key, at) VALUES (zeroblob(32), 7)`,
	} {
		if _, err := s.db.Exec(change); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, s, 1) // its chain begins with the job alone
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err := ReadLedger(dir); err != nil || len(l.Entries) != 1 {
		t.Errorf("schema 2: %+v, %v", l, err)
	}
	s = open(t, dir)
	commit(t, s, 2)
	if v, err := getMeta(s.db, "schema"); err != nil || v != schemaVersion {
		t.Errorf("schema %q after going on, %v", v, err)
	}
	if out, err := s.NotDrawn(time.Unix(8, 0)); err != nil || len(out) != 1 {
		t.Errorf("who was enrolled before was seen then: %v, %v", out, err)
	}
	if l, err := s.Ledger(); err != nil || len(l.Entries) != 2 {
		t.Errorf("ledger %+v, %v", l, err)
	}
}

// TestTheDrawIsTheIntent: a round begun with its cost is owed from then on: it
// cannot be dropped free of charge, and a crash right after the draw pays for it.
func TestTheDrawIsTheIntent(t *testing.T) {
	dir := folder(t)
	s := open(t, dir)
	cost := event(1, dp.KindRelease)
	if _, err := s.BeginRound(Round{Certificate: cert, Cost: &dp.Event{}}); err == nil {
		t.Error("an empty cost was stored")
	}
	late := event(2, dp.KindRelease)
	if _, err := s.BeginRound(Round{Certificate: cert, Cost: &late}); err == nil {
		t.Error("round 1 was begun with the cost of round 2")
	}
	id, err := s.BeginRound(Round{Certificate: cert, Cost: &cost})
	if err != nil || id != 1 {
		t.Fatal(id, err)
	}
	if err := s.Abandon(id, "too few"); err == nil {
		t.Error("a drawn round was abandoned free of charge")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	l, err := s.Ledger()
	if err != nil || len(l.Entries) != 1 || l.Entries[0].Event.Kind != dp.KindCharged || len(s.Recovered()) != 1 {
		t.Errorf("after a crash behind the draw: %+v, %q, %v", l.Entries, s.Recovered(), err)
	}
}

// TestWhatIsPaidIsWhatWasIntended: an event with less noise, another rate or
// another size than the stored intent pays for nothing, though it is valid in
// itself and the ledger would agree with it.
func TestWhatIsPaidIsWhatWasIntended(t *testing.T) {
	s := open(t, folder(t))
	id := begin(t, s, 0)
	if err := s.PersistIntent(event(id, dp.KindRelease)); err != nil {
		t.Fatal(err)
	}
	spec := dp.ReleaseSpec{Round: id, SamplingRate: 1, B2: b2, NoiseMultiplier: 0.8, NoiseScale: 0.0024, SimulatedRate: 0.01, Certificate: cert.Hash()}
	for name, edit := range map[string]func(*dp.ReleaseSpec){
		"half the noise": func(r *dp.ReleaseSpec) { r.NoiseMultiplier /= 2 },
		"half the scale": func(r *dp.ReleaseSpec) { r.NoiseScale /= 2 },
		"another rate":   func(r *dp.ReleaseSpec) { r.SamplingRate = 0.5 },
		"another norm":   func(r *dp.ReleaseSpec) { r.B2 /= 4 },
		"another draw":   func(r *dp.ReleaseSpec) { r.Certificate[0]++ },
	} {
		other := spec
		edit(&other)
		ev, err := other.Event(8192)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(ev, note(id), Checkpoint{Version: 1, Round: id}); !errors.Is(err, ErrIntent) {
			t.Errorf("%s: commit: %v", name, err)
		}
		if _, err := s.Charge(ev, note(id)); !errors.Is(err, ErrIntent) {
			t.Errorf("%s: charge: %v", name, err)
		}
	}
	next := begin(t, s, 0)
	if _, err := s.Commit(event(next, dp.KindRelease), note(next), Checkpoint{Version: 1, Round: next}); !errors.Is(err, ErrIntent) {
		t.Errorf("a round without an intent was committed: %v", err)
	}
	if _, err := s.Commit(event(id, dp.KindNoiseOnly), note(id), Checkpoint{Version: 1, Round: id}); err != nil {
		t.Error(err)
	}
}

func TestOldCheckpointsDropTheirParameters(t *testing.T) {
	dir := folder(t)
	opt := options()
	opt.KeepCheckpoints = 2
	s, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for v := range uint64(4) {
		commit(t, s, v+1)
	}
	var kept int
	if err := s.db.QueryRow(`SELECT count(*) FROM checkpoint WHERE adapter IS NOT NULL`).Scan(&kept); err != nil || kept != 2 {
		t.Errorf("%d checkpoints with parameters, %v", kept, err)
	}
	if l, err := s.Ledger(); err != nil || len(l.Entries) != 4 {
		t.Errorf("ledger after pruning: %v, %v", l, err)
	}
}

// TestTamper: whatever is changed in the ledger behind the program's back, Open
// and ReadLedger name it.
func TestTamper(t *testing.T) {
	for name, sqls := range map[string][]string{
		"body": {`UPDATE ledger SET event = (SELECT event FROM ledger WHERE seq = 0) WHERE seq = 1`}, "nonce": {`UPDATE ledger SET event = substr(event, 1, 79) || zeroblob(32) WHERE seq = 1`},
		"middle cut":                    {`DELETE FROM ledger WHERE seq = 1`},
		"tail cut":                      {`DELETE FROM ledger WHERE seq = 2`},
		"all cut":                       {`DELETE FROM ledger`},
		"tail and its checkpoint moved": {`UPDATE checkpoint SET version = 7 WHERE version = 3`},
		"checkpoint cut":                {`DELETE FROM checkpoint WHERE version = 3`},
		"hash":                          {`UPDATE ledger SET hash = zeroblob(32) WHERE seq = 2`},
		"order":                         {`UPDATE ledger SET seq = 9 WHERE seq = 0`},
		"round":                         {`UPDATE ledger SET round = 77 WHERE seq = 2`},
		"certificate":                   {`UPDATE round SET certificate = replace(certificate, '24', '25')`},
		"round gone":                    {`DELETE FROM round WHERE id = 2`},
		"commit to charge":              {`UPDATE checkpoint SET ledger = zeroblob(32) WHERE version = 1`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			s := open(t, dir)
			for v := range uint64(3) {
				commit(t, s, v+1)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			db := behind(t, dir)
			for _, q := range sqls {
				if strings.Contains(q, " ledger") {
					if _, err := db.Exec(q); err == nil && !strings.Contains(q, "checkpoint SET") {
						t.Errorf("%s: the trigger let it through", q)
					}
				}
			}
			for _, q := range append(unguarded(db, "ledger"), sqls...) {
				if _, err := db.Exec(q); err != nil {
					t.Fatal(q, err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadLedger(dir); !errors.Is(err, ErrLedger) {
				t.Errorf("ReadLedger: %v", err)
			}
			if again, err := Open(dir, options()); !errors.Is(err, ErrLedger) {
				t.Errorf("Open: %v", err)
				if err == nil {
					again.Close()
				}
			}
		})
	}
}

func TestDamagedCheckpoint(t *testing.T) {
	s := open(t, folder(t))
	if c, err := s.Last(); c != nil || err != nil {
		t.Fatal(c, err)
	}
	commit(t, s, 1)
	if _, err := s.db.Exec(`UPDATE checkpoint SET adapter = $1`, []byte{0xff}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Last(); err == nil {
		t.Error("a damaged checkpoint was loaded")
	}
}

// A ledger that promises noise takes no round without it, neither as a release nor as a
// charge.
func TestPromisedNoiseIsInEveryEntry(t *testing.T) {
	s := open(t, folder(t))
	id := begin(t, s, 0)
	bare := dp.Event{Mechanism: dp.Mechanism{SamplingRate: 1}, Round: id, Count: 1, Kind: dp.KindUnnoised, NoiseScale: 1, Dim: 10}
	l, err := s.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	bare.Certificate = event(id, dp.KindRelease).Certificate
	if err := s.PersistIntent(bare); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(bare, note(id), Checkpoint{Version: 1, Round: id}); err == nil || !strings.Contains(err.Error(), "no noise") {
		t.Errorf("committed: %v", err)
	}
	if _, err := s.Charge(bare, note(id)); err == nil || !strings.Contains(err.Error(), "no noise") {
		t.Errorf("charged: %v", err)
	}
	if after, err := s.Ledger(); err != nil || len(after.Entries) != len(l.Entries) || after.Unnoised {
		t.Errorf("%+v, %v", after, err)
	}
}
