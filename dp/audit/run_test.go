package audit

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sampled is a job over n devices that trains the head of a tiny base.
func sampled(n int, q float64, rounds int, epsilon float64) job.Job {
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "audited", []string{"one", "two"}, rounds
	j.Adapter = job.Adapter{RankMin: 2, RankMax: 2, Alpha: 2, Sequence: 8}
	j.Cohort.Population, j.Cohort.SamplingRate = n, q
	j.Shard.Size = 128
	if q < 1 {
		j.Cohort.Floor = int(0.35 * q * float64(n))
	}
	j.Privacy.Epsilon, j.Privacy.Delta = epsilon, 1e-6
	return j
}

// audited runs an audit whose every coin is fixed: it passes or fails for good. With
// coins of its own a sound job's would fail with probability 5 % at most.
func audited(t *testing.T, j job.Job, trace ...Attendance) Result {
	t.Helper()
	r, err := Run(t.Context(), Config{Job: j, Base: tiny.Base(t, 32, 2, 16), Trace: trace, Rand: rand.NewChaCha8([32]byte{3}), Seed: make([]byte, 32)})
	ok(t, err)
	t.Logf("epsilon at least %.4g (at most %.4g can show), %.4g in the ledger, best: %+v", r.Epsilon, r.Most, r.Ledger.Epsilon, r.Best)
	return r
}

// adaptive is a job whose clip norm follows a noisy count.
func adaptive() job.Job {
	j := sampled(100, 1, 60, 1)
	j.Clipping.Adaptive = true
	return j
}

// declared says that nearly a half of its devices may vanish: what their coins tip is in
// its noise.
func declared() job.Job {
	j := shaky()
	j.Cohort.Dropout = 0.4
	return j
}

// devices makes a job's noise its devices' own.
func devices(j job.Job) job.Job {
	j.Privacy.Noise = job.NoiseDevices
	return j
}

// A sound job passes. TestPutBack holds that these same audits find flaws.
func TestSoundJobs(t *testing.T) {
	for name, c := range map[string]struct {
		j     job.Job
		trace []Attendance
	}{
		"sampled":          {sampled(200, 0.4, 100, 2), nil},
		"dropout":          {sampled(160, 0.4, 100, 2), []Attendance{{1, 0.05}, {0.9, 0}}},
		"all":              {sampled(300, 1, 30, 3), []Attendance{{1, 0.1}}},
		"adaptive":         {adaptive(), nil},
		"declared":         {declared(), []Attendance{{1, 0.4}}},
		"devices":          {devices(sampled(300, 1, 30, 1)), []Attendance{{1, 0.1}}},
		"devices, sampled": {devices(sampled(200, 0.4, 100, 2)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := audited(t, c.j, c.trace...)
			if r.Flawed || r.Epsilon > r.Ledger.Epsilon {
				t.Errorf("FLAWED: %v in the ledger, %v at least by %+v", r.Ledger.Epsilon, r.Epsilon, r.Best)
			}
			if r.Ledger.Epsilon > c.j.Privacy.Epsilon || r.Ledger.Rounds != c.j.Rounds || r.Most < 1.2*c.j.Privacy.Epsilon && name != "adaptive" {
				t.Errorf("%d rounds, ledger %v; at most %v could be found", r.Ledger.Rounds, r.Ledger.Epsilon, r.Most)
			}
		})
	}
}

// shaky is a job whose shards take a bare majority, so that nobody's coin decides over
// any as long as fewer than a half vanish: it declares that hardly anybody does.
func shaky() job.Job {
	j := sampled(160, 0.4, 400, 0.5)
	j.Shard.Corrupt, j.Shard.BreachBits, j.Cohort.Dropout = 0, 1, 0.001
	return j
}

// A device's own coin decides whether its shard is released where others vanish until
// just enough are left: their threshold is of the devices that were cut, itself
// included. Earlier versions counted no dropouts at all (docs/privacy/proofs.md, section 5);
// that is back where half of the devices vanish and none were declared to. Forty
// canaries of which each is drawn in 40 % of 1,000 rounds show, whatever the seed; twenty
// in 400 rounds did for some.
func TestFindsThatOneCoinDecidesOverAShard(t *testing.T) {
	j := shaky()
	if q, err := j.Derived().Quorum(); err != nil || q.Hit != 0 {
		t.Fatalf("%+v, %v: nothing is promised of who is there", q, err)
	}
	long := j
	long.Rounds = 1000
	if r := audited(t, long, Attendance{1, 0.5}); !r.Flawed || r.Best.Score != ScoreFates {
		t.Errorf("not found: %+v", r)
	}
	// Where as few vanish as are declared, no canary decides anything.
	if r := audited(t, j, Attendance{1, 0.001}); r.Flawed || len(r.Passes) != 2 {
		t.Errorf("found where it is not: %+v", r)
	}
	// Where more are declared what their coins show is in the noise, of devices that are
	// there: whether they are is not promised any more, and not looked at.
	j.Cohort.Dropout = 0.4
	if r := audited(t, j, Attendance{1, 0.4}); r.Flawed || len(r.Passes) != 1 {
		t.Errorf("found where it is accounted: %+v", r)
	}
}

// What the releases show of unsampled canaries is a part of what the ledger says: an audit
// that sees nothing would find no flaw either.
func TestReleasesShow(t *testing.T) {
	j := sampled(1000, 1, 20, 4)
	j.Adapter.RankMin, j.Adapter.RankMax = 8, 8
	r := audited(t, j)
	if r.Best.Score != ScoreReleases || r.Epsilon < 0.2*r.Ledger.Epsilon || r.Flawed {
		t.Errorf("%+v", r.Best)
	}
}

func TestRefuses(t *testing.T) {
	base := tiny.Base(t, 32, 2, 16)
	for what, change := range map[string]func(*Config){
		"canaries is -1":          func(c *Config) { c.Canaries = -1 },
		"3 canaries":              func(c *Config) { c.Canaries = 3 },
		"cohort.population = 200": func(c *Config) { c.Canaries = 201 },
		"level is 0.7":            func(c *Config) { c.Level = 0.7 },
		"limit is -1s":            func(c *Config) { c.Limit = -time.Second },
		"privacy.none is set":     func(c *Config) { c.Job.Privacy.None = true },
		"privacy.mechanism is banded": func(c *Config) {
			c.Job.Cohort.Sampling, c.Job.Cohort.Size, c.Job.Cohort.SamplingRate, c.Job.Privacy.Mechanism = "fixed", 20, 1, "banded"
		},
		"audit a copy of the job without providers": func(c *Config) { c.Job.Providers.Max = 2 },
		"the trace has not brought":                 func(c *Config) { c.Trace = []Attendance{{0.01, 0}} },
		"seed has 3 bytes":                          func(c *Config) { c.Seed = []byte("abc") },
		"audit: randomness: no coins":               func(c *Config) { c.Rand = iotest.ErrReader(errors.New("no coins")) },
	} {
		cfg := Config{Job: sampled(200, 0.4, 10, 2), Base: base, Rand: rand.NewChaCha8([32]byte{})}
		change(&cfg)
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An audit ends when it is told to: by its limit, with what it has, or by its context.
func TestEnds(t *testing.T) {
	base := tiny.Base(t, 32, 2, 16)
	ctx, cancel := context.WithCancel(t.Context())
	cfg := Config{Job: sampled(200, 0.4, 10, 2), Base: base, Limit: time.Nanosecond}
	r, err := Run(ctx, cfg)
	ok(t, err)
	if r.Passes[0].Rounds != 1 || r.Ledger.Rounds != 1 || r.Passes[0].Of != 10 {
		t.Errorf("%+v", r)
	}
	cfg.Progress = func(_ Pass, round, _ int) {
		if round == 3 {
			cancel()
		}
	}
	cfg.Limit = 0
	if _, err := Run(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestReadTrace(t *testing.T) {
	got, err := ReadTrace(strings.NewReader("online,dropout\n# night\n0.5,0.1\n1, 0\n"))
	ok(t, err)
	if !slices.Equal(got, []Attendance{{0.5, 0.1}, {1, 0}}) {
		t.Errorf("%v", got)
	}
	for text, want := range map[string]string{
		"":                          "no round",
		"online,dropout\n":          "no round",
		"dropout,online\n0,1\n":     "head",
		"online,dropout\n0.5,1.1\n": "round 1: dropout",
		"online,dropout\nNaN,0\n":   "round 1: online",
		"online,dropout\n1\n":       "wrong number of fields",
	} {
		if _, err := ReadTrace(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("online,dropout\n0.5,0.1\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ReadTrace(strings.NewReader(text))
		if (err == nil) != (len(got) > 0) {
			t.Fatalf("%v with %v", got, err)
		}
		for _, a := range got {
			if !(a.Online >= 0 && a.Online <= 1 && a.Dropout >= 0 && a.Dropout <= 1) {
				t.Fatalf("%v", a)
			}
		}
	})
}

// A fleet too small for canaries is audited in several runs of its job: the README's command.
func TestFewDevicesInSeveralRuns(t *testing.T) {
	j, err := job.Load("../../examples/job.yaml")
	ok(t, err)
	j.Adapter.Sequence = 8
	r := audited(t, j)
	if p := r.Passes[0]; len(r.Passes) != 1 || p.Runs != 16 || p.Canaries != 64 || p.Rounds != 160 || len(p.Scores) != 64 {
		t.Errorf("%+v", p)
	}
	// Noise for a million devices hides none of four: nearly all guesses are right, of all runs together.
	if r.Epsilon < 1 || r.Epsilon > r.Most || r.Flawed {
		t.Errorf("epsilon at least %v, at most %v can show, flawed %v", r.Epsilon, r.Most, r.Flawed)
	}
}
