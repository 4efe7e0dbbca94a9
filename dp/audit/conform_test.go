package audit

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/protocol/card"
	"github.com/starling-fl/starling/internal/testkit/nightly"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
)

// conforming makes the checks of a job alone, without guesses.
func conforming(t testing.TB, j job.Job, p plant, seed uint64) []Check {
	t.Helper()
	c, r := rounds(t, j, p, seed)
	return c.conclude(r)
}

// byChance makes those with chance in them.
func byChance(t testing.TB, j job.Job, p plant, seed uint64) []Check {
	t.Helper()
	c, r := rounds(t, j, p, seed)
	return c.checks(r)
}

func rounds(t testing.TB, j job.Job, p plant, seed uint64) (*conformity, *run) {
	t.Helper()
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed+1)
	cfg := Config{Job: j, Base: tiny.Base(t, 32, 2, 16), Rand: rand.NewChaCha8(key), Seed: key[:], plant: p}
	ok(t, cfg.fill())
	c, r, err := conformed(t.Context(), cfg, time.Now().Add(time.Hour), seed)
	ok(t, err)
	return c, r
}

// someNoise adds a noise of its own making.
type someNoise func(sum []int64, v dp.Variance) error

func (f someNoise) AddNoise(sum []int64, v dp.Variance) error { return f(sum, v) }

// part is a share of a variance.
func part(v dp.Variance, of float64) dp.Variance {
	out, err := dp.NewVariance(math.Sqrt(v.Float()*of), 1, 1)
	if err != nil {
		panic(err)
	}
	return out
}

// example is the README's job, with a short sequence.
func example(t testing.TB) job.Job {
	j, err := job.Load("../../examples/job.yaml")
	ok(t, err)
	j.Adapter.Sequence = 8
	return j
}

// lossy has more hits than delta holds: they are in its ledger.
func lossy(t testing.TB) job.Job {
	j := declared()
	j.Rounds = 40
	q, err := j.Derived().Quorum()
	if ok(t, err); q.Hit == 0 {
		t.Fatal("no hits: no test")
	}
	return j
}

// planted are flaws, each with the check that has to find it, in a job that it is one of.
func planted(t testing.TB) map[string]struct {
	j    job.Job
	p    plant
	find string
} {
	short := sampled(200, 0.4, 30, 2)
	wrap := func(f func(n dp.Noise, sum []int64, v dp.Variance) error) plant {
		return plant{noise: func(n dp.Noise) dp.Noise {
			return someNoise(func(sum []int64, v dp.Variance) error { return f(n, sum, v) })
		}}
	}
	second := wrap(func(n dp.Noise, sum []int64, v dp.Variance) error {
		was := append([]int64{}, sum...)
		err := n.AddNoise(sum, v)
		for i := 1; i < len(sum); i += 2 {
			sum[i] = was[i]
		}
		return err
	})
	half := plant{}
	half.noise = func() func(dp.Noise) dp.Noise { // one source for all rounds
		rnd := rand.NewChaCha8([32]byte{7})
		return func(dp.Noise) dp.Noise {
			return someNoise(func(sum []int64, v dp.Variance) error { return dp.NewSampler(rnd).AddNoise(sum, part(v, 0.25)) })
		}
	}()
	same := wrap(func(_ dp.Noise, sum []int64, v dp.Variance) error {
		return dp.NewSampler(rand.NewChaCha8([32]byte{9})).AddNoise(sum, v)
	})
	// The noise of ten rounds before; nothing in one round of thirty.
	repeated := plant{noise: func() func(dp.Noise) dp.Noise {
		round := byte(0)
		return func(dp.Noise) dp.Noise {
			round++
			return someNoise(func(sum []int64, v dp.Variance) error {
				return dp.NewSampler(rand.NewChaCha8([32]byte{round % 10, 5})).AddNoise(sum, v)
			})
		}
	}()}
	once := plant{noise: func() func(dp.Noise) dp.Noise {
		round := 0
		return func(n dp.Noise) dp.Noise {
			if round++; round%30 == 7 {
				return someNoise(func([]int64, dp.Variance) error { return nil })
			}
			return n
		}
	}()}
	none := wrap(func(dp.Noise, []int64, dp.Variance) error { return nil })
	// As much in all, and less on a quarter of the coordinates.
	uneven := wrap(func(n dp.Noise, sum []int64, v dp.Variance) error {
		was := append([]int64{}, sum...)
		err := n.AddNoise(sum, v)
		for i := range sum {
			scale := 1.1
			if i%4 == 0 {
				scale = 0.6
			}
			sum[i] = was[i] + int64(math.Round(float64(sum[i]-was[i])*scale))
		}
		return err
	})
	twice := plant{coins: func(d dp.Draw) dp.Draw {
		return func(q float64, rnd io.Reader) ([]int, dp.Certificate, error) {
			in, cert, err := d(2*q, rnd)
			cert.Rate = q
			return in, cert, err
		}
	}}
	frozen := plant{coins: func(d dp.Draw) dp.Draw {
		var in []int
		return func(q float64, rnd io.Reader) ([]int, dp.Certificate, error) {
			now, cert, err := d(q, rnd)
			if in == nil {
				in = now
			}
			return append([]int{}, in...), cert, err
		}
	}}
	favoured := plant{coins: func(d dp.Draw) dp.Draw { // one is always in
		return func(q float64, rnd io.Reader) ([]int, dp.Certificate, error) {
			in, cert, err := d(q, rnd)
			if len(in) == 0 || in[0] != 0 {
				in = append([]int{0}, in...)
			}
			return in, cert, err
		}
	}}
	uncharged := plant{event: func(e *dp.Event) bool { return e.Round%2 == 0 }}
	halved := plant{event: func(e *dp.Event) bool {
		e.B2 /= 2
		v, err := dp.NewVariance(e.NoiseMultiplier, e.B2, e.NoiseScale)
		e.Sigma2 = v
		return err == nil
	}}
	unhit := plant{event: func(e *dp.Event) bool { e.Hit = 0; return true }}
	own := plant{own: func(dp.Variance) dp.Variance { return dp.Variance{} }}
	out := map[string]struct {
		j    job.Job
		p    plant
		find string
	}{}
	type named struct {
		name, find string
		p          plant
	}
	both := []named{
		{"noise on every second coordinate", CheckNoise, second}, {"half the noise", CheckNoise, half},
		{"the same noise every round", CheckRounds, same},
		{"no noise", CheckNoise, none}, {"uneven noise", CheckCoordinates, uneven},
		{"half the rounds uncharged", CheckCharged, uncharged}, {"B2 halved", CheckNorm, halved},
	}
	for name, j := range map[string]job.Job{"example": example(t), "sampled": short} {
		for _, f := range both {
			out[name+": "+f.name] = struct {
				j    job.Job
				p    plant
				find string
			}{j, f.p, f.find}
		}
	}
	alternating := plant{coins: func(d dp.Draw) dp.Draw {
		var in [][]int
		return func(q float64, rnd io.Reader) ([]int, dp.Certificate, error) {
			now, cert, err := d(q, rnd)
			if in = append(in, now); len(in) > 2 {
				now = append([]int{}, in[len(in)%2]...)
			}
			return now, cert, err
		}
	}}
	for _, f := range []named{
		{"twice the coin rate", CheckSize, twice}, {"the same cohort every round", CheckOverlap, frozen},
		{"two cohorts in turn", CheckOverlap, alternating}, {"one member in every round", CheckMembers, favoured},
		{"the noise of ten rounds before", CheckRounds, repeated}, {"no noise in one round", CheckCoordinates, once},
	} {
		out["sampled: "+f.name] = struct {
			j    job.Job
			p    plant
			find string
		}{short, f.p, f.find}
	}
	out["hits: uncharged"] = struct {
		j    job.Job
		p    plant
		find string
	}{lossy(t), unhit, CheckHits}
	out["devices: no own noise"] = struct {
		j    job.Job
		p    plant
		find string
	}{devices(sampled(300, 1, 10, 1)), own, CheckOwn}
	return out
}

func verdicts(checks []Check) map[string]Verdict {
	out := map[string]Verdict{}
	for _, c := range checks {
		out[c.Name] = c.Verdict
	}
	return out
}

// Each planted flaw is found by the check that it is for; without it all checks hold.
func TestPlantedFlaws(t *testing.T) {
	for name, c := range planted(t) {
		t.Run(name, func(t *testing.T) {
			if got := conforming(t, c.j, c.p, 1); verdicts(got)[c.find] != Flawed {
				t.Errorf("not found by %s: %+v", c.find, got)
			}
			if got := conforming(t, c.j, plant{}, 1); flawed(got) || verdicts(got)[c.find] != Holds {
				t.Errorf("found where it is not: %+v", got)
			}
		})
	}
}

// How often flaws are found.
func TestPower(t *testing.T) {
	nightly.Only(t, "it makes thousands of audits")
	const tries = 300
	for name, c := range planted(t) {
		if c.find == CheckCharged || c.find == CheckNorm { // no chance is in them
			continue
		}
		found := 0
		for seed := range uint64(tries) {
			if flawed(byChance(t, c.j, c.p, 100+seed)) {
				found++
			}
		}
		t.Logf("%s: %d of %d, at least %.4f", name, found, tries, rateAtLeast(tries, found, 0.05))
		if rateAtLeast(tries, found, 0.05) < 0.99 {
			t.Errorf("%s: found in %d of %d", name, found, tries)
		}
	}
}

// Of so many sound sets of rounds, of the real noise and the real coins, hardly any is called flawed:
// the upper bound of Clopper and Pearson, at 95 %, is below 1e-3.
func TestFalseAlarms(t *testing.T) {
	const tries, n, d, size = 4000, 8, 128, 50
	src := rand.NewChaCha8([32]byte{11})
	v, err := dp.NewVariance(1, leastVariance, 1)
	ok(t, err)
	sampler, draw := dp.NewSampler(src), dp.PoissonDrawNumbered(size)
	j := job.Default()
	j.Cohort.Population, j.Cohort.SamplingRate = size, 0.3
	wrong := 0
	for seed := range uint64(tries) {
		c := newConformity(j, seed)
		for k := range n {
			if k == n/2 {
				c.newRun()
			}
			noise := make([]int64, d+2)
			ok(t, sampler.AddNoise(noise, v))
			c.noise.add(noise, d, leastVariance)
			in, _, err := draw(0.3, src)
			ok(t, err)
			c.cohorts.add(in)
		}
		if checks := append(c.noise.checks(), c.cohorts.checks()...); flawed(checks) {
			wrong++
			t.Logf("%d: %+v", seed, checks)
		}
	}
	if most := 1 - rateAtLeast(tries, tries-wrong, 0.05); most > 1e-3 {
		t.Errorf("%d of %d sound jobs are called flawed: at most %.5f", wrong, tries, most)
	}
}

// The same of whole audits, with all thirteen checks: of sound jobs with coins, with hits, and with devices' own noise. It takes
// minutes.
func TestFalseAlarmsOfAllChecks(t *testing.T) {
	nightly.Only(t, "it makes thousands of audits")
	coins, own, hit := sampled(200, 0.4, 4, 2), devices(sampled(300, 1, 4, 1)), lossy(t)
	hit.Rounds = 4
	tested := map[string]bool{}
	for name, c := range map[string]struct {
		j     job.Job
		tries uint64
	}{"coins": {coins, 300}, "own noise": {own, 300}, "hits": {hit, 300}} {
		wrong := 0
		for seed := range c.tries {
			checks := conforming(t, c.j, plant{}, 1000+seed)
			if flawed(checks) {
				wrong++
				t.Logf("%s: %d: %+v", name, seed, checks)
			}
			for _, check := range checks {
				tested[check.Name] = tested[check.Name] || check.Verdict != NotTested
			}
		}
		most := 1 - rateAtLeast(int(c.tries), int(c.tries)-wrong, 0.05)
		t.Logf("%s: %d of %d sound audits are called flawed: at most %.5f", name, wrong, c.tries, most)
		if most > 1e-2 { // each check by itself has less than 1e-3, by its p-values
			t.Errorf("%s: %d of %d sound audits are called flawed: at most %.5f", name, wrong, c.tries, most)
		}
	}
	if len(tested) != 13 {
		t.Errorf("%d checks", len(tested))
	}
	for name, is := range tested {
		if !is {
			t.Errorf("%s was not tested", name)
		}
	}
}

// What a privacy card says of the checks is about checks that there are, and about flaws that TestPower plants.
func TestCardsNameChecksAndFlaws(t *testing.T) {
	flaws := planted(t)
	for _, w := range card.Audited() {
		known := false
		for name, f := range flaws {
			_, flaw, _ := strings.Cut(name, ": ")
			known = known || flaw == w.Flaw && f.find == w.Test
		}
		if !known {
			t.Errorf("no flaw %q is planted for %q", w.Flaw, w.Test)
		}
	}
}

// The second accountant agrees with the first, which shares nothing with it.
func TestRecompose(t *testing.T) {
	for _, c := range []struct {
		q, z, hit float64
		rounds    int
	}{{1, 8, 0, 50}, {0.01, 0.8375, 0, 200}, {0.4, 5, 0, 100}, {0.01, 0.8375, 0.05, 200}, {1, 0.02, 0, 10}} {
		e := dp.Rounds(dp.Mechanism{SamplingRate: c.q, NoiseMultiplier: c.z}, c.rounds)
		e.Hit = c.hit
		g, err := accounting.Epsilon([]dp.Event{e}, 1e-6, dp.Tight)
		ok(t, err)
		got := recompose([]alike{{c.q, c.z, c.hit, c.rounds}}, 1e-6, g.Epsilon)
		if !(math.Abs(got/g.Epsilon-1) < slackLedger/2) {
			t.Errorf("%+v: %v, the ledger's accountant %v", c, got, g)
		}
	}
	// Which half of its rounds misses.
	e := dp.Rounds(dp.Mechanism{SamplingRate: 0.4, NoiseMultiplier: 5}, 50)
	g, err := accounting.Epsilon([]dp.Event{e}, 1e-6, dp.Tight)
	ok(t, err)
	if c := ledger([]dp.Event{e}, g, 100, 0.4); c[0].Verdict != Flawed || c[1].Verdict != Flawed {
		t.Errorf("half of the rounds: %+v", c)
	}
}

// The distributions are those of exact sums in Python.
func TestDistributions(t *testing.T) {
	for what, c := range map[string][2]float64{
		"chi2":          {chi2(10, 1), 2 * 0.000172115629955},
		"chi2, above":   {chi2(100, 200), 2 * 1.1784500720979424e-08},
		"normal":        {normal(4), 6.33424836662e-05},
		"binomial":      {binomialOut(1000, 460, 0.4), 2 * 6.783213000638444e-05},
		"binomial, few": {binomialOut(30, 2, 0.4), 2 * 4.7383510126810514e-05},
		"none":          {binomialOut(20, 0, 0.3), 2 * math.Pow(0.7, 20)},
		"all":           {binomialOut(20, 20, 1), 1},
		"not all":       {binomialOut(20, 19, 1), 0},
		"at least":      {rateAtLeast(500, 500, 0.05), math.Pow(0.05, 1./500)},
		"at least none": {rateAtLeast(500, 0, 0.05), 0},
	} {
		if math.Abs(c[0]-c[1]) > 1e-4*c[1] {
			t.Errorf("%s: %.12g, want %.12g", what, c[0], c[1])
		}
	}
	low, high := ratios(1000, 1e-4)
	if p := chi2(1000, 1000*low); math.Abs(p/1e-4-1) > 1e-3 || high < 1.1 || high > 1.3 || low > 0.9 {
		t.Errorf("%v, %v: %v", low, high, p)
	}
	if !strings.Contains(string(Flawed), "FLAWED") {
		t.Error("TestPutBack looks for the word")
	}
}
