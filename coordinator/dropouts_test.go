package coordinator

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
)

// With as many dropping out as declared, in every round or now and then together, the
// job is not paused: over 400 jobs a chance of 400 * 1e-3. With twice as many, or in one
// round with three times as many, it is.
func TestDropoutsBeyondTheDeclared(t *testing.T) {
	const rounds, cohort, share = 200, 100, 0.15
	j := job.Default()
	j.Rounds, j.Cohort.Population, j.Cohort.SamplingRate, j.Privacy.Delta = rounds, 10_000, 0.01, 1 // so that alpha is 1e-3
	j = j.Derived()
	play := func(r *rand.Rand, share func(round int) float64) (d dropouts) {
		for round := range rounds {
			lost, p := 0, share(round)
			for range cohort {
				if r.Float64() < p {
					lost++
				}
			}
			if d.take(j, taken{9000, 2, cohort, lost, 0.15}); d.Beyond != "" {
				return d
			}
		}
		return d
	}
	paused := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		outages := func(round int) float64 { return []float64{0.01, share}[round%2] }
		if play(r, func(int) float64 { return share }).Beyond != "" || play(r, outages).Beyond != "" {
			paused++
		}
	}
	if paused > 4 { // P[Binomial(800, 1e-3) > 4] = 1e-3
		t.Errorf("%d of 400 jobs within what they declare were paused", paused)
	}
	r := rand.New(rand.NewPCG(1, 2))
	if d := play(r, func(int) float64 { return 2 * share }); d.Beyond == "" || d.Rounds > 20 {
		t.Errorf("twice the declared share: %+v", d)
	}
	if d := play(r, func(round int) float64 {
		if round == 150 {
			return 3 * share
		}
		return 0.01
	}); d.Rounds != 151 || !strings.Contains(d.Beyond, "the last round") {
		t.Errorf("an outage in round 151: %+v", d)
	}
}

// A fleet that loses the declared tenth in most rounds and three tenths in one of five, by chance or
// one after another, has a mean within what is declared and no round that is striking, and is hit
// far more often than was accounted: sold 2.00, delivered 2.92. It is noticed.
func TestClusteredOutagesPause(t *testing.T) {
	j := job.Default()
	j.Rounds, j.Cohort.Population, j.Cohort.SamplingRate, j.Privacy.Delta = 200, 20_000, 0.01, 1e-6
	j.Cohort.MaxEnrolled = 20_000
	j = j.Derived()
	q, err := j.Quorum()
	if err != nil || q.Hit != 0 {
		t.Fatalf("%+v, %v: no test", q, err)
	}
	groups, ok := q.Allows(j, 20_000, 20_000)
	if !ok {
		t.Fatal("all are there, and no round is drawn")
	}
	share := j.Loss(20_000, 20_000)
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		var d dropouts
		for round := range 200 {
			p := 0.1
			if seed%2 == 0 && round%5 == 0 || seed%2 == 1 && r.IntN(5) == 0 {
				p = 0.3
			}
			asked, lost := 0, 0
			for range 300 {
				if r.Float64() < 2./3 {
					asked++
					if r.Float64() < p {
						lost++
					}
				}
			}
			if d.take(j, taken{20_000, groups, asked, lost, share}); d.Beyond != "" {
				break
			}
		}
		if d.Beyond == "" {
			t.Errorf("seed %d: the outages were not noticed", seed)
		}
	}
}

// A sampled fleet of which far more leaves than is declared is paused, also by the
// next process, until the operator says otherwise.
func TestTooManyDropoutsPause(t *testing.T) {
	const n = 60
	j := sampledJob(n, 30)
	j.Cohort.Dropout, j.Shard.Corrupt = 0.02, 0
	base, dir := tinyBase(t), t.TempDir()
	leave := func(_ int, p *player) {
		p.before = func(p *player, now int, m wire.Message) (wire.Message, bool) {
			if now == 3 && p.id()[0]%2 == 0 { // half of them, in every round
				return &wire.Refuse{Round: p.round, Code: wire.CodePlan, Reason: "leaves"}, false
			}
			return m, false
		}
	}
	charged := 0
	run := func() {
		t.Helper()
		tb := setTable(t, Config{Job: j, Dir: dir, Base: base}, n, leave)
		tb.onProgress = func(p monitor.Status) {
			if p.State == monitor.StateWaiting && strings.Contains(p.Reason, "paused") {
				for _, want := range []string{"cohort.dropout", "adapter.start", "--despite-dropout", "declared loss of 0.02"} {
					if !strings.Contains(p.Reason, want) {
						t.Errorf("%q says nothing of %s", p.Reason, want)
					}
				}
				tb.stop()
			}
		}
		if err := tb.run(); !errors.Is(err, context.Canceled) {
			t.Fatalf("Run ended with %v", err)
		}
	}
	run()
	if charged = len(entriesOf(t, dir)); charged == 0 || charged > 3 {
		t.Errorf("%d rounds before the pause", charged)
	}
	run()
	if again := len(entriesOf(t, dir)); again != charged {
		t.Errorf("the next process drew %d rounds", again-charged)
	}
	for _, despite := range []bool{true, false} { // once said it is kept
		c, err := New(Config{Job: j, Dir: dir, Base: base, Hosts: []string{}, DespiteDropout: despite})
		if err != nil {
			t.Fatal(err)
		}
		if _, reason := c.needed(); strings.Contains(reason, "paused") || c.dropouts != (dropouts{Overruled: 1}) {
			t.Errorf("%s, %+v", reason, c.dropouts)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Whether a device is struck for its silence hangs on it and on whether the round was
// released, not on how many others were silent: one more or less of them changes nothing.
func TestSilenceHangsOnNobodyElse(t *testing.T) {
	for _, others := range []int{0, 1, 7, 8, 9, 30} {
		for _, released := range []bool{true, false} {
			tb := setTable(t, Config{Job: tinyJob(40)}, 1, nil)
			c := tb.c
			r := &running{Draw: &core.Draw{}}
			for i := range 1 + others {
				d := c.addDevice([32]byte{1, byte(i)})
				if _, err := c.store.Enrol(d.ID, 0); err != nil {
					t.Fatal(err)
				}
				r.silent = append(r.silent, d)
			}
			d := r.silent[0]
			d.Overdue, d.Missed = maxStrikes, maxStrikes
			c.silence(r, released)
			if d.Excluded != released {
				t.Errorf("with %d others silent, released %v: excluded %v", others, released, d.Excluded)
			}
			tb.server.Close()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Who is slower than the others, but not than the job, is excluded after six rounds; not where the job
// says that some devices are slow.
func TestDeclaredSlowAreNotExcluded(t *testing.T) {
	for _, slow := range []float64{0, 0.3} {
		j := tinyJob(40)
		j.Deadlines.Slow = slow
		tb := setTable(t, Config{Job: j}, 1, nil)
		c := tb.c
		r := &running{Draw: &core.Draw{}}
		for i, overdue := range []int{0, maxStrikes} {
			d := c.addDevice([32]byte{1, byte(i)})
			if _, err := c.store.Enrol(d.ID, 0); err != nil {
				t.Fatal(err)
			}
			d.Missed, d.Overdue = 2*maxStrikes, overdue
			r.silent = append(r.silent, d)
		}
		c.silence(r, true)
		if late, hung := r.silent[0], r.silent[1]; late.Excluded != (slow == 0) || !hung.Excluded {
			t.Errorf("slow %v: the late one is excluded: %v, the hung one: %v", slow, late.Excluded, hung.Excluded)
		}
		tb.server.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What everybody may see of a round under way is that there is one.
func TestPublicStatusIsOfWhatIsOver(t *testing.T) {
	tb := setTable(t, Config{Job: loud(4, 2)}, 4, nil)
	seen := map[string]int{}
	tb.onProgress = func(p monitor.Status) {
		open := tb.c.PublicStatus()
		seen[open.State]++
		over := p.State == monitor.StateCommitted || p.State == monitor.StateAbandoned || p.State == monitor.StateWaiting || p.State == monitor.StateFinished || p.State == monitor.StateMeasuring
		if over != (open.State == p.State) || !over && open.State != monitor.StateRunning {
			t.Errorf("in state %s everybody sees %s", p.State, open.State)
		}
		if !over && (int(open.Round) != p.Version || open.Rank == p.Rank && open.Round == 0 && p.Rank != 0) {
			t.Errorf("in round %d everybody sees %+v", p.Round, open.RoundID)
		}
		if open.Elapsed%60e9 != 0 {
			t.Errorf("elapsed %v", open.Elapsed)
		}
	}
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	if seen[monitor.StateRunning] < 4 || seen[monitor.StateCommitted] == 0 || tb.c.PublicStatus().State != monitor.StateFinished {
		t.Errorf("seen %v", seen)
	}
}

// Every round of a job whose shards a coin may tip is in the ledger with that
// probability, and the noise is calibrated for it.
func TestHitsAreInTheLedger(t *testing.T) {
	j := tinyJob(200)
	j.Cohort.SamplingRate, j.Cohort.Floor, j.Cohort.Dropout, j.Rounds = 0.3, 10, 0.2, 5
	j.Shard = job.Shard{Size: 64, Floor: 10, Corrupt: 0.05, BreachBits: 10}
	j.Privacy.Epsilon, j.Privacy.Delta, j.Privacy.NoiseMultiplier = 4, 1e-5, 0
	j.Privacy.Observer = "public"
	terms, err := core.NewTerms(j, tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	if terms.Quorum.Hit <= 0 {
		t.Fatalf("quorum %+v: no test", terms.Quorum)
	}
	e, err := terms.Costliest()
	if err != nil {
		t.Fatal(err)
	}
	if e.Hit != terms.Quorum.Hit {
		t.Errorf("accounted with hits of %v, the quorum has %v", e.Hit, terms.Quorum.Hit)
	}
	e.Count = 5
	g, err := accounting.Epsilon([]dp.Event{e}, terms.Budget.Delta-terms.Budget.Floor, dp.Tight)
	if err != nil || g.Epsilon > 4 || g.Epsilon < 3.99 || !strings.Contains(g.Adjacency, "zero-out") {
		t.Errorf("%v, %v", g, err)
	}
	free, err := accounting.CalibrateNoise(4, terms.Budget.Delta-terms.Budget.Floor, 0.3, 5, dp.Tight)
	if err != nil || terms.NoiseMultiplier <= free {
		t.Errorf("z = %v, without hits %v, %v", terms.NoiseMultiplier, free, err)
	}
}

// A sampled round is made with those who are there when the coins fall: who rests does
// not count towards the quorum, and who comes later is not taken, so that a device that
// was drawn and is not there holds the round open for nobody.
func TestASampledRoundIsOfThoseWhoAreThere(t *testing.T) {
	const n = 80
	j := sampledJob(n, 5)
	tb := setTable(t, Config{Job: j}, 0, nil)
	c := tb.c
	defer func() {
		tb.server.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range n {
		id := [32]byte{1, byte(i)}
		if _, err := c.store.Enrol(id, 0); err != nil {
			t.Fatal(err)
		}
		d := c.addDevice(id)
		c.fleet.NowReady(d)
	}
	c.started = time.Now()
	if err := c.musterFleet(); err != nil {
		t.Fatal(err)
	}
	c.fleet.Muster(nil) // musterFleet counts on sessions; all are active
	if enough, reason := c.needed(); !enough {
		t.Fatalf("all are there: %s", reason)
	}
	least := c.t.Quorum.Ready
	resting := n - least + 1
	for _, d := range c.fleet.All()[:resting] {
		c.fleet.Rest(d, time.Now().Add(time.Hour))
	}
	if enough, _ := c.needed(); enough || c.fleet.Available(time.Now()) != least-1 {
		t.Errorf("%d of %d rest, and a quorum of %d is there", resting, n, least)
	}
	c.fleet.At(0).Rests = time.Time{}
	if enough, reason := c.needed(); !enough {
		t.Fatalf("%d are there: %s", least, reason)
	}
	for _, d := range c.fleet.All()[1:resting] { // a few of the others are away
		if d.N%3 == 0 {
			c.fleet.Unready(d)
			d.Gone, d.Rests = time.Now(), time.Time{}
		}
	}
	c.fleet.Rest(c.fleet.At(0), time.Now().Add(time.Hour))
	if _, err := c.draw(); err == nil {
		t.Fatal("coins were flipped with one less than the quorum")
	}
	c.fleet.At(0).Rests = time.Time{}
	r, err := c.draw()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.prepare(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	c.running = r
	defer func() { c.running = nil }()
	c.gather(r)
	if r.m.State() != round.Keying {
		t.Fatalf("the round is in %v, of nobody is waited for in gathering", r.m.State())
	}
	taken, late := 0, 0
	for number, p := range r.parts {
		in := r.m.Wants(number, round.Keying) == round.Accepted
		if in != p.there {
			t.Errorf("device %d: there %v, taken %v", number, p.there, in)
		}
		if in {
			taken++
			continue
		}
		late++
		d := c.fleet.At(number)
		d.Rests, d.Ready = time.Time{}, true
		c.present(r, d) // it comes now
		if r.m.Wants(number, round.Keying) == round.Accepted || r.m.State() != round.Keying {
			t.Errorf("device %d came late and is taken", number)
		}
	}
	if taken < 10 || late < 2 {
		t.Errorf("%d taken, %d late: the test shows little", taken, late)
	}
	r.noise.Close()
}
