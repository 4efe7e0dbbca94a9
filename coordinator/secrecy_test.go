package coordinator

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
)

// prepared draws a round of a coordinator that nobody has joined, and starts its
// noise.
func prepared(t *testing.T, seed []byte, members int) (*Coordinator, *running) {
	t.Helper()
	job := tinyJob(20)
	c, err := New(Config{Job: job, Dir: t.TempDir(), Base: tinyBase(t), Hosts: []string{}, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range members {
		c.addDevice([32]byte{byte(i), 1})
	}
	r, err := c.draw()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.prepare(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.noise.Close)
	return c, r
}

// TestPrivateRunsDrawFromTheSystem: every purpose of a private run reads the
// operating system's generator, the certificate in the ledger says so, and two runs
// share neither noise, coins, rotation nor secrets.
func TestPrivateRunsDrawFromTheSystem(t *testing.T) {
	for _, purpose := range []string{"noise", "cohort", "rank", "rotation", "shards", "authority", "instance", "adapter"} {
		if (core.Randomness{}).Stream(purpose, 1) != io.Reader(rand.Reader) {
			t.Errorf("%s of a private run is not read from crypto/rand", purpose)
		}
	}
	noise := map[string]bool{}
	rotations, commitments := map[[32]byte]bool{}, map[[32]byte]bool{}
	for range 2 {
		c, r := prepared(t, nil, 20)
		if c.core.Noise(r.Draw) != io.Reader(rand.Reader) {
			t.Error("noise of a private run is not read from crypto/rand")
		}
		x := make([]int64, 64)
		if err := r.noise.AddNoise(x, r.Event().Sigma2); err != nil {
			t.Fatal(err)
		}
		noise[fmt.Sprint(x)] = true
		rotations[r.Rotation()], commitments[r.Certificate().Commitment] = true, true
		if r.Certificate().Generator != "crypto/rand" || r.Certificate().Nonce == [32]byte{} || r.Rotation() == [32]byte{} {
			t.Errorf("the draw is from %q, rotation %x", r.Certificate().Generator, r.Rotation())
		}
	}
	if len(noise) != 2 || len(rotations) != 2 || len(commitments) != 2 {
		t.Errorf("two private runs share noise (%d), rotations (%d) or draws (%d)", len(noise), len(rotations), len(commitments))
	}
	dir := t.TempDir()
	tb := setTable(t, Config{Job: tinyJob(3), Dir: dir}, 3, nil)
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	for _, e := range entriesOf(t, dir) {
		if e.Cohort.Generator != "crypto/rand" {
			t.Errorf("the ledger of a private run says %q", e.Cohort.Generator)
		}
	}
}

// TestSeededStreamsAreApart: in a reproducible run no two purposes and no two rounds
// share a stream: not noise, nor rotation, nor coins.
func TestSeededStreamsAreApart(t *testing.T) {
	core, err := core.New(tinyJob(20), tinyBase(t), bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	check := func(what string, b []byte) {
		if other, ok := seen[string(b)]; ok {
			t.Errorf("%s is %s", what, other)
		}
		seen[string(b)] = what
	}
	for round := range uint64(3) {
		d, err := core.Draw(dp.PoissonDrawNumbered(20))
		if err != nil {
			t.Fatal(err)
		}
		noise := make([]byte, 32)
		if _, err := io.ReadFull(core.Noise(d), noise); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("noise of draw %d", round), noise)
		rotation, cert := d.Rotation(), d.Certificate()
		check(fmt.Sprintf("rotation of draw %d", round), rotation[:])
		check(fmt.Sprintf("nonce of draw %d", round), cert.Nonce[:])
		for _, purpose := range []string{"rank", "shards"} { // the nonce begins the cohort's
			b, err := core.Randomness().Read(purpose, d.ID(), 32)
			if err != nil {
				t.Fatal(err)
			}
			check(fmt.Sprintf("stream of %s of draw %d", purpose, round), b)
		}
		if err := core.ContinueAt(core.NextRound() + 1); err != nil {
			t.Fatal(err)
		}
	}
	var pools [][]int64
	for _, seed := range []byte{7, 8} {
		c, r := prepared(t, bytes.Repeat([]byte{seed}, 32), 20)
		x := make([]int64, 64)
		if err := r.noise.AddNoise(x, r.Event().Sigma2); err != nil {
			t.Fatal(err)
		}
		pools = append(pools, x)
		if c.rnd.Secret() {
			t.Error("a seeded run is called secret")
		}
	}
	if slices.Equal(pools[0], pools[1]) {
		t.Error("two seeds have one noise")
	}
}

// TestBudgetStopsEveryJob: the round behind the last that the budget holds is
// refused before anything is drawn or written, with coins and without.
func TestBudgetStopsEveryJob(t *testing.T) {
	for _, rate := range []float64{1, 0.8} {
		job := tinyJob(20)
		job.Cohort.SamplingRate = rate
		c, err := New(Config{Job: job, Dir: t.TempDir(), Base: tinyBase(t), Hosts: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range byte(20) {
			c.fleet.NowReady(c.addDevice([32]byte{i, 1}))
		}
		for range job.Rounds {
			r, err := c.draw()
			if err != nil {
				t.Fatal(err)
			}
			c.spent = append(c.spent, r.Event())
		}
		next := c.core.NextRound()
		if _, err := c.draw(); !errors.Is(err, ErrBudget) {
			t.Errorf("rate %v: round %d of %d: %v", rate, job.Rounds+1, job.Rounds, err)
		}
		if got, err := c.store.NextRound(); err != nil || got != next {
			t.Errorf("rate %v: the refused round was written: %d, want %d, %v", rate, got, next, err)
		}
		c.accounts.work.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNothingShownDependsOnUpdates: two runs with one seed and one set of devices,
// whose updates differ, say the same in log, journal and status, byte for byte but
// for times and traffic: no sum and no norm of an update is in them.
func TestNothingShownDependsOnUpdates(t *testing.T) {
	const n = 4
	type shown struct{ log, journal, progress, between []string }
	var runs []shown
	var keys []*player
	for run, v := range []float32{0.001, 0.4} {
		var log bytes.Buffer
		job := tinyJob(n)
		dir := t.TempDir()
		tb := setTable(t, Config{Job: job, Dir: dir, Seed: bytes.Repeat([]byte{9}, 32),
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, n,
			func(i int, p *player) {
				p.delta = fixedDelta(v)
				if run > 0 {
					p.key = keys[i].key
				}
			})
		keys = tb.players
		if err := tb.run(); err != nil {
			t.Fatal(err)
		}
		var s shown
		for _, line := range strings.Split(log.String(), "\n") {
			if _, rest, ok := strings.Cut(line, "level="); ok && !strings.Contains(rest, "session over") {
				s.log = append(s.log, rest)
			}
		}
		again, err := store.Open(dir, store.Options{Task: job.Name, Job: digestOf(t, tb.c), NotPrivate: true})
		if err != nil {
			t.Fatal(err)
		}
		lines, err := again.Lines()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			s.journal = append(s.journal, fmt.Sprint(l))
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		tb.mu.Lock()
		for _, p := range tb.seen {
			p.Elapsed, p.BytesUp, p.BytesDown = 0, 0, 0
			p.Parts.Turns.Down, p.Parts.Rest.Down = 0, 0 // they say times, which take a byte more or less
			to := &s.progress
			if p.State != monitor.StateCommitted { // how many have come or answered at a moment is a matter of time
				to = &s.between
				p.Enrolled, p.Connected, p.Answered, p.Parts = 0, 0, 0, monitor.Parts{}
				if p.State == monitor.StateWaiting {
					p.Reason = ""
				}
			}
			b, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			*to = append(*to, string(b))
		}
		tb.mu.Unlock()
		slices.Sort(s.between)
		slices.Sort(s.log) // devices enrol in any order
		s.log = numbered.ReplaceAll(s.log)
		runs = append(runs, s)
	}
	for what, of := range map[string]func(shown) []string{
		"log": func(s shown) []string { return s.log }, "journal": func(s shown) []string { return s.journal },
		"progress":               func(s shown) []string { return slices.Compact(s.progress) },
		"progress within rounds": func(s shown) []string { return slices.Compact(s.between) },
	} {
		a, b := of(runs[0]), of(runs[1])
		if len(a) == 0 || !slices.Equal(a, b) {
			t.Errorf("the %s differs with the updates:\n%s\n\n%s", what, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
}

// numbered takes out what says in which order devices enrolled.
var numbered = replacer{regexp.MustCompile(`enrolled=\d+`)}

type replacer struct{ *regexp.Regexp }

func (r replacer) ReplaceAll(lines []string) []string {
	for i, l := range lines {
		lines[i] = r.ReplaceAllString(l, "enrolled=N")
	}
	slices.Sort(lines)
	return lines
}

func digestOf(t *testing.T, c *Coordinator) [32]byte {
	t.Helper()
	d, err := digest(c.t, c.rnd.Secret())
	if err != nil {
		t.Fatal(err)
	}
	return d
}
