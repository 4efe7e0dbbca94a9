package coordinator

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job"
)

// bandedJob has noise that cancels between its rounds, each of 4 of n devices.
func bandedJob(n, separation, rounds int) Job {
	j := tinyJob(n)
	j.Rounds = rounds
	j.Adapter.RankMin = 3
	j.Cohort.Sampling, j.Cohort.Size, j.Cohort.Floor, j.Cohort.SamplingRate = "fixed", 4, 4, 1
	j.Privacy = job.Privacy{Epsilon: 50, Delta: 1e-6, Accountant: "tight", Mechanism: job.MechanismBanded, Separation: separation,
		ClipNorm: j.Privacy.ClipNorm}
	return j
}

// released are the versions, from 1, for which each device had a plan and was told of a release.
func released(players []*player) map[uint64][][32]byte {
	out := map[uint64][][32]byte{}
	for _, p := range players {
		p.mu.Lock()
		for _, plan := range p.plans {
			out[plan.Version+1] = append(out[plan.Version+1], p.id())
		}
		p.mu.Unlock()
	}
	return out
}

// apartIn fails where a device is in two of any separation releases in a row. tries says how many
// cohorts a release may have had.
func apartIn(t *testing.T, in map[uint64][][32]byte, separation uint64) {
	t.Helper()
	for v, cohort := range in {
		for other := v + 1; other < v+separation; other++ {
			for _, id := range in[other] {
				if slices.Contains(cohort, id) {
					t.Errorf("device %x is in releases %d and %d", id[:4], v, other)
				}
			}
		}
	}
}

// A served job draws no device within the separation, over a restart too, keeps the noise of the
// band and no more, and what it keeps is that of a core with the same seed.
func TestServedBandedRounds(t *testing.T) {
	const n, separation, rounds = 12, 3, 6
	for _, of := range []struct{ seeded, blocks bool }{{true, false}, {true, true}, {false, false}} {
		cfg := Config{Job: bandedJob(n, separation, rounds), Dir: t.TempDir(), Base: tinyBase(t)}
		noises := separation - 1
		if of.blocks { // of two rounds with a rank in common: six are over
			cfg.Job.Adapter.RankMin, cfg.Job.Privacy.Band, noises = 1, 2, 0
		}
		if of.seeded {
			cfg.Seed = []byte("0123456789abcdef")
		}
		all := map[uint64][][32]byte{}
		var keys []*player
		for _, until := range []int{3, rounds} {
			tb := setTable(t, cfg, n, func(i int, p *player) {
				if keys != nil {
					p.key = keys[i].key
				}
			})
			keys = tb.players
			if until < rounds {
				tb.onProgress = func(p monitor.Status) {
					if p.State == monitor.StateCommitted && p.Version == until {
						tb.stop()
					}
				}
			}
			if err := tb.run(); until == rounds && err != nil {
				t.Fatal(err)
			}
			for v, ids := range released(tb.players) {
				if v > uint64(until) {
					continue // cut off, and told to nobody
				}
				if len(ids) != 4 || len(all[v]) != 0 {
					t.Errorf("release %d has %d devices, and had %d", v, len(ids), len(all[v]))
				}
				all[v] = ids
			}
		}
		apartIn(t, all, separation)
		s, err := store.Open(cfg.Dir, storeOptions(t, cfg))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := s.Kept()
		ledger, failed := s.Ledger()
		if err := errors.Join(err, failed, s.Close()); err != nil || len(kept) != separation-1 {
			t.Fatalf("%d kept, %v", len(kept), err)
		}
		rows := 0
		for _, entry := range ledger.Entries {
			e := entry.Event
			if e.Kind != dp.KindCharged {
				rows++
			}
			if e.Banded.Row != uint64(rows) || e.Banded.Separation != separation || entry.Cohort.Method != dp.MethodSeparated {
				t.Errorf("round %d is charged as %+v, drawn by %s", e.Round, e.Banded, entry.Cohort.Method)
			}
		}
		if c := len(ledger.Entries); c != rounds {
			t.Errorf("%d rounds are charged", c)
		}
		for i, k := range kept {
			ids := slices.SortedFunc(slices.Values(all[k.Version]), func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
			if k.Version != uint64(rounds-i) || !slices.Equal(k.Cohort, ids) || (len(k.Noise) == 0) != (i >= noises) {
				t.Errorf("of release %d %d devices are kept, drawn were %d; %d bytes of noise", k.Version, len(k.Cohort), len(ids), len(k.Noise))
			}
		}
		if of.seeded {
			sameAsCore(t, cfg, ledger, keys, all, kept)
		}
	}
}

// sameAsCore draws the rounds of a ledger from their seed as a simulation does.
func sameAsCore(t *testing.T, cfg Config, ledger store.Ledger, players []*player, in map[uint64][][32]byte, kept []store.Kept) {
	t.Helper()
	c, err := core.New(cfg.Job, cfg.Base, cfg.Seed)
	if err != nil {
		t.Fatal(err)
	}
	var ids [][32]byte
	for _, p := range players {
		ids = append(ids, p.id())
	}
	slices.SortFunc(ids, func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	var last [][]int
	for _, e := range ledger.Events() {
		if err := c.ContinueAt(e.Round); err != nil {
			t.Fatal(err)
		}
		resting := slices.Sorted(slices.Values(slices.Concat(last...)))
		d, err := c.Draw(dp.SeparatedDrawNumbered(len(ids), cfg.Job.Cohort.Size, resting))
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == dp.KindCharged {
			continue
		}
		var drawn [][32]byte
		for _, at := range d.Cohort() {
			drawn = append(drawn, ids[at])
		}
		slices.SortFunc(in[c.Version()+1], func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
		if !slices.Equal(drawn, in[c.Version()+1]) {
			t.Errorf("release %d: %d devices, and not those that a simulation draws", c.Version()+1, len(drawn))
		}
		_, clip, err := c.Release(d, make([]int64, d.Size()), len(drawn), false, dp.NewSampler(c.Noise(d)))
		if err != nil {
			t.Fatal(err)
		}
		c.Commit(clip)
		last = append(last, d.Cohort())
		last = last[max(0, len(last)-cfg.Job.Privacy.Separation+1):]
	}
	s, err := c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var noise []byte
	for _, k := range kept {
		noise = append(noise, k.Noise...)
	}
	if _, before := c.Job().NoiseBlock(c.Version()); before == 0 {
		s.Noise = nil // the next round does not look at it
	}
	if !bytes.Equal(s.Noise, noise) {
		t.Error("the served job's noise is not that of a core with its seed")
	}
}

// storeOptions are how a job's own store is opened.
func storeOptions(t *testing.T, cfg Config) store.Options {
	t.Helper()
	terms, err := core.NewTerms(cfg.Job, cfg.Base)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := digest(terms, cfg.Seed == nil)
	if err != nil {
		t.Fatal(err)
	}
	return store.Options{Task: terms.Job.Name, Job: sum, NotPrivate: cfg.Seed != nil, Delta: terms.Budget.Delta}
}

// A coordinator that was killed in any state of a round goes on with the same resting devices and
// kept noise: no device is in two releases within the separation, and a round whose unmasking had
// begun is charged as one more look.
func TestCrashOfBandedRounds(t *testing.T) {
	const n, separation = 12, 3
	job := bandedJob(n, separation, 4)
	base, dir, images := tinyBase(t), t.TempDir(), t.TempDir()
	job.Privacy.NoiseMultiplier, job.Privacy.Epsilon = 1, 1e6 // room for a charged round
	type image struct {
		dir   string
		state string
		in    map[uint64][][32]byte
	}
	var taken []image
	tb := setTable(t, Config{Job: job, Dir: dir, Base: base}, n, nil)
	tb.onProgress = func(p monitor.Status) {
		if p.Version != 2 || p.State == monitor.StateCommitted || p.State == monitor.StateWaiting || p.State == monitor.StateFinished {
			return
		}
		im := image{dir: filepath.Join(images, fmt.Sprint(len(taken))), state: p.State, in: map[uint64][][32]byte{}}
		copyStore(t, dir, im.dir)
		taken = append(taken, im)
	}
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	first := released(tb.players)
	keys := tb.players
	if len(taken) < 7 {
		t.Fatalf("%d images", len(taken))
	}
	for _, im := range taken {
		cfg := Config{Job: job, Dir: im.dir, Base: base}
		tb := setTable(t, cfg, n, func(i int, p *player) { p.key = keys[i].key })
		if got := len(tb.c.apart.in); got != 8 || tb.c.core.Version() != 2 {
			t.Errorf("%s: %d devices rest at version %d", im.state, got, tb.c.core.Version())
		}
		before, err := tb.c.core.Snapshot()
		if err != nil || len(before.Noise) == 0 {
			t.Errorf("%s: %d bytes of noise, %v", im.state, len(before.Noise), err)
		}
		charged := len(tb.c.spent) - 2
		if begun := im.state == "unmasking" || im.state == "releasing"; charged != map[bool]int{true: 1}[begun] {
			t.Errorf("%s: %d charged", im.state, charged)
		} else if begun && (tb.c.spent[2].Kind != dp.KindCharged || tb.c.spent[2].Banded.Row != 3) {
			t.Errorf("%s: charged as %+v", im.state, tb.c.spent[2])
		}
		if err := tb.run(); err != nil {
			t.Fatalf("%s: %v", im.state, err)
		}
		in := released(tb.players)
		in[1], in[2] = first[1], first[2]
		if len(in[3]) != 4 || len(in[4]) != 4 {
			t.Errorf("%s: %d and %d devices", im.state, len(in[3]), len(in[4]))
		}
		apartIn(t, in, separation)
	}
}

// Without what it kept a job goes on no more, and says so.
func TestBandedJobWithoutWhatItKept(t *testing.T) {
	cfg := Config{Job: bandedJob(12, 3, 3), Dir: t.TempDir(), Base: tinyBase(t)}
	tb := setTable(t, cfg, 12, nil)
	tb.onProgress = func(p monitor.Status) {
		if p.State == monitor.StateCommitted && p.Version == 2 {
			tb.stop()
		}
	}
	_ = tb.run() // it was stopped
	s, err := store.Open(cfg.Dir, storeOptions(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	last, err := s.Last()
	if err := errors.Join(err, s.Close()); err != nil || last.Version != 2 {
		t.Fatalf("%+v, %v", last, err)
	}
	for change, name := range map[string]string{
		`DELETE FROM kept WHERE version = 1`:                                "the devices of 1 last rounds are kept, of 2",
		`UPDATE kept SET noise = NULL WHERE version = 1`:                    "of release 1 is damaged",
		`UPDATE kept SET noise = zeroblob(length(noise)) WHERE version = 2`: "of release 2 is damaged",
	} {
		dir := t.TempDir()
		b, err := os.ReadFile(filepath.Join(cfg.Dir, store.FileName))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, store.FileName), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", filepath.Join(dir, store.FileName))
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec(change)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		c, err := New(Config{Job: cfg.Job, Dir: dir, Base: cfg.Base, Hosts: []string{}})
		if err == nil {
			err = errors.Join(errors.New("it opened"), c.Close())
		}
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
