package edge

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

func accountJob(rounds uint64) *job {
	return &job{Job: wire.Job{Name: "test", Rounds: rounds, Privacy: wire.Privacy{Private: true, NoiseMultiplier: 1, Delta: 1e-6}}}
}

// A job that announced 20 rounds gets 20, whatever its coordinator says of them,
// but for what it may have lost, and across restarts of the device.
func TestHostilePromise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "account.json")
	for _, c := range []struct {
		commits bool
		want    int
	}{{true, 20}, {false, 25}} {
		j := accountJob(20)
		if !c.commits {
			j.task[0]++
		}
		given := 0
		for round := uint64(1); round <= 100; round++ {
			a, err := OpenAccount(path) // a new process
			ok(t, err)
			if err := a.begin(j, round, 1000, time.Now()); err != nil {
				if !errors.Is(err, ErrPromise) || !fatal(err) {
					t.Errorf("round %d: %v", round, err)
				}
				break
			}
			ok(t, a.contribute(j, new(Policy), traffic{}))
			given++
			if c.commits {
				ok(t, a.committed(j, traffic{}))
			}
		}
		if given != c.want {
			t.Errorf("commits %v: %d rounds of 20", c.commits, given)
		}
	}
	a, err := OpenAccount(path)
	ok(t, err)
	for _, j := range a.Jobs() {
		g, counted, err := j.Epsilon()
		if err != nil || !counted || g.Epsilon < 10 || g.Rounds != int(j.Contributed) {
			t.Errorf("%+v: %v, %v", j, g, err)
		}
	}
}

// What is noted is on disk before it is true, a round is not answered twice by
// two processes, and the pace holds over all jobs.
func TestHostilePace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "account.json")
	a, err := OpenAccount(path)
	ok(t, err)
	now := time.Unix(1_700_000_000, 0)
	one, two := accountJob(1000), accountJob(1000)
	two.task[0]++
	for round := uint64(1); round <= 5; round++ {
		ok(t, a.begin(one, round, 10, now))
		ok(t, a.begin(two, round, 10, now))
	}
	pace := new(paceError)
	if err := a.begin(one, 6, 10, now); !errors.As(err, &pace) || pace.wait <= 0 || pace.wait > longestPause || !strings.Contains(err.Error(), "--rounds-a-day") {
		t.Errorf("the 11th round of a day: %v", err)
	}
	ok(t, a.begin(one, 7, 10, now.Add(25*time.Hour)))
	b, err := OpenAccount(path)
	ok(t, err)
	refusal := new(RefusalError)
	if err := b.begin(one, 7, 10, now.Add(26*time.Hour)); !errors.As(err, &refusal) || !errors.Is(err, ErrReplay) {
		t.Errorf("a round that was answered before a restart: %v", err)
	}
	// A disk that keeps nothing stops the device.
	c, err := NewAccount(nil, func([]byte) error { return errors.New("disk is full") })
	ok(t, err)
	if err := c.begin(one, 1, 10, now); !errors.Is(err, ErrAccount) || !fatal(err) {
		t.Errorf("%v", err)
	}
}

// The device itself: rounds without end are answered as far as they were
// announced.
func TestHostileEndlessJob(t *testing.T) {
	h := newHouse(t) // it announces 3 rounds
	var devices []*device
	var peers []*peer
	var account *Account
	for i := range 3 {
		cfg := h.config(&constant{value: 0.01})
		if i == 0 {
			var err error
			account, err = NewAccount(nil, nil)
			ok(t, err)
			cfg.Account = account
		}
		devices = append(devices, h.start(cfg))
		peers = append(peers, h.admit(false))
	}
	for round := uint64(1); round <= 3; round++ {
		h.round(h.plan(round), peers, nil)
	}
	peers[0].assign(h.plan(4))
	if m := want[*wire.Refuse](peers[0]); m.Code != wire.CodePlan {
		t.Errorf("%+v", m)
	}
	if err := devices[0].wait(t); !errors.Is(err, ErrPromise) {
		t.Errorf("%v", err)
	}
	if jobs := account.Jobs(); len(jobs) != 1 || jobs[0].Contributed != 3 || jobs[0].Committed != 3 || jobs[0].Begun != 3 {
		t.Errorf("%+v", jobs)
	}
	// What the plan itself says cannot go beyond the announcement either.
	p := h.plan(9)
	p.Version = 3
	peers[1].assign(p)
	if m := want[*wire.Refuse](peers[1]); m.Code != wire.CodePlan {
		t.Errorf("%+v", m)
	}
}

// An account that cannot be read is not begun anew.
func TestHostileAccountFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "account.json")
	for _, text := range []string{"", "{", `{"version":2}`, `{"version":1,"jobs":{"ab":null}}`, `{"version":1,"more":1}`, strings.Repeat(" ", mostAccount+1)} {
		ok(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := OpenAccount(path); !errors.Is(err, ErrAccount) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func FuzzAccount(f *testing.F) {
	f.Add([]byte(`{"version":1,"jobs":{"ab":{"name":"x","promised":3}},"begun":{"1":2}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := NewAccount(b, nil)
		if err != nil {
			return
		}
		for _, j := range a.Jobs() {
			_, _, _ = j.Epsilon()
		}
	})
}

// Jobs that each keep their word cost together what they cost together: what the
// data has given is composed over all of them, kept across restarts, and ends at the
// owner's limit, before the round that would pass it.
func TestHostileManyJobs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "account.json")
	const most = 40
	var given, jobs int
	var last error
	for jobs = 0; jobs < 50 && last == nil; jobs++ {
		a, err := OpenAccount(path)
		ok(t, err)
		j := accountJob(3)
		j.task[0] = byte(jobs)
		for round := uint64(1); round <= 3; round++ {
			if last = a.afford(j, &Policy{Epsilon: most}); last != nil {
				break
			}
			ok(t, a.begin(j, round, 1000, time.Now()))
			ok(t, a.contribute(j, new(Policy), traffic{}))
			ok(t, a.committed(j, traffic{}))
			given++
		}
	}
	refused := new(PolicyError)
	if !errors.As(last, &refused) || !fatal(last) || refused.Flag() != "--epsilon" || jobs < 3 {
		t.Errorf("%d jobs, %d rounds: %v", jobs, given, last)
	}
	a, err := OpenAccount(path)
	ok(t, err)
	s, err := a.Spent()
	ok(t, err)
	// The same rounds as one job, and one more.
	var want [2]float64
	for i := range want {
		g, err := accounting.Epsilon([]dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 1}, given+i)}, 1e-6, dp.RDP)
		ok(t, err)
		want[i] = g.Epsilon
	}
	if s.Devices == nil || s.Devices.Rounds != given || math.Abs(s.Devices.Epsilon/want[0]-1) > 1e-6 || s.Providers != nil || want[0] > most || want[1] <= most {
		t.Errorf("%+v after %d rounds, want %v and not %v", s.Devices, given, want[0], want[1])
	}
	if err := a.afford(accountJob(3), new(Policy)); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// What a job announces of its noise is its coordinator's word. Figures that no
// accountant takes, or noise that the coordinator knows, are no noise; they neither
// break the account nor count as little.
func TestHostileAnnouncedNoise(t *testing.T) {
	for name, c := range map[string]struct {
		edit      func(*wire.Job)
		noiseless bool
	}{
		"a seeded run":        {func(j *wire.Job) { j.Privacy.Private = false }, true},
		"none":                {func(j *wire.Job) { j.Privacy.NoiseMultiplier = 0 }, true},
		"next to none":        {func(j *wire.Job) { j.Privacy.NoiseMultiplier = 1e-320 }, true},
		"without end":         {func(j *wire.Job) { j.Privacy.NoiseMultiplier = math.MaxFloat64 }, false},
		"a delta of nothing":  {func(j *wire.Job) { j.Privacy.Delta = 0 }, true},
		"a delta below all":   {func(j *wire.Job) { j.Privacy.Delta = 5e-324 }, false},
		"a delta of all":      {func(j *wire.Job) { j.Privacy.Delta = 1 }, true},
		"coins of nearly no.": {func(j *wire.Job) { j.Providers, j.ProviderRate = 2, 1e-300 }, false},
	} {
		a, err := NewAccount(nil, nil)
		ok(t, err)
		honest, liar := accountJob(9), accountJob(9)
		liar.task[0]++
		c.edit(&liar.Job)
		for _, j := range []*job{honest, liar} {
			ok(t, a.begin(j, 1, 10, time.Now()))
			ok(t, a.contribute(j, new(Policy), traffic{}))
		}
		alone, err := NewAccount(nil, nil)
		ok(t, err)
		ok(t, alone.begin(honest, 1, 10, time.Now()))
		ok(t, alone.contribute(honest, new(Policy), traffic{}))
		s, err := a.Spent()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		before, err := alone.Spent()
		ok(t, err)
		if s.Jobs != 2 || (len(s.Noiseless) == 1) != c.noiseless || s.Devices == nil || s.Devices.Epsilon < before.Devices.Epsilon-1e-9 {
			t.Errorf("%s: %+v, the honest job alone %+v", name, s, before.Devices)
		}
		if err := a.afford(honest, &Policy{Epsilon: 1e6}); (err != nil) != c.noiseless {
			t.Errorf("%s: an owner with a limit: %v", name, err)
		}
	}
}

// The owner's limit holds in a session: the round that would pass it is refused
// before its keys are made, and the device leaves.
func TestHostileRoundBeyondTheLimit(t *testing.T) {
	h := newHouse(t) // noise multiplier 1: a round costs an epsilon of about 5
	cfg := h.config(&constant{value: 0.01})
	cfg.Policy.Epsilon = 0.5
	var err error
	cfg.Account, err = NewAccount(nil, nil)
	ok(t, err)
	d := h.start(cfg)
	p := h.admit(false)
	p.assign(h.plan(1))
	if m := want[*wire.Refuse](p); m.Code != wire.CodePolicy {
		t.Errorf("%+v", m)
	}
	if err := d.wait(t); !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), "--epsilon=") {
		t.Errorf("%v", err)
	}
	if jobs := cfg.Account.Jobs(); len(jobs) > 1 || len(jobs) == 1 && (jobs[0].Begun != 0 || jobs[0].Contributed != 0) {
		t.Errorf("%+v", jobs)
	}
}

// The account keeps what each of the last rounds began with, also over a restart; a replayed round changes nothing.
func TestStartsAreKept(t *testing.T) {
	var kept []byte
	a, err := NewAccount(nil, func(b []byte) error { kept = b; return nil })
	ok(t, err)
	j := accountJob(1000)
	for round := uint64(1); round <= mostStarts+3; round++ {
		j.start = startOf(&wire.Plan{Slice: wire.Slice{Digest: [32]byte{byte(round)}}})
		ok(t, a.begin(j, round, 1000, time.Now()))
	}
	j.start = "another"
	if a.begin(j, mostStarts+3, 1000, time.Now()) == nil {
		t.Error("a round was answered twice")
	}
	b, err := NewAccount(kept, nil)
	ok(t, err)
	starts := b.Jobs()[0].Starts
	if len(starts) != mostStarts || starts[0].Round != 4 || starts[mostStarts-1] != (Start{mostStarts + 3, fmt.Sprintf("%02x", mostStarts+3) + strings.Repeat("0", 62)}) {
		t.Errorf("%d starts: %+v", len(starts), starts)
	}
	if seed := startOf(&wire.Plan{Seed: make([]byte, 8)}); !strings.HasPrefix(seed, "seed:") {
		t.Errorf("of a fresh adapter: %q", seed)
	}
	was, err := b.Forget("test")
	if ok(t, err); len(was.Starts) != mostStarts || len(b.Jobs()[0].Starts) != 0 {
		t.Errorf("forgotten: %+v", b.Jobs()[0].Starts)
	}
}
