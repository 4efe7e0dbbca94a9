package sim

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// constant moves every value by the same amount.
type constant float32

func (c constant) Train(_ context.Context, t edge.Task) ([]float32, error) {
	delta := make([]float32, len(t.Start))
	for i := range delta {
		delta[i] = float32(c)
	}
	return delta, nil
}

func (constant) Close() error { return nil }

// tinyBase is an encoder of a few thousand weights.
func tinyBase(t testing.TB) *model.Base { return tiny.Base(t, 32, 2, 16) }

// config is a job over n devices whose noise is far below the updates: the
// simulated cohort is enormous, and the lattice fine. Rounding moves the mean of
// 64 values by 3e-5, noise by less, as standard deviations; tests that allow 2%
// of 0.04 err with a chance below 1e-50.
func config(t testing.TB, n int) Config {
	t.Helper()
	j := job.Default()
	j.Server.Optimizer = "fedavg" // the mean itself, which the tests compute by hand
	j.Name, j.Labels, j.Rounds = "test", []string{"one", "two"}, 3
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 2, Alpha: 2, Sequence: 16}
	j.Cohort.Population, j.Cohort.Floor = n, 3
	j.Shard = job.Shard{Size: 32, Floor: 3}
	j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 10_000_000, 100_000
	j.Wire.Uplink = "fixed16"
	j.Privacy.ClipNorm, j.Privacy.NoiseMultiplier = 1, 3                      // leaves budget for a round that is charged
	j.Deadlines.Gather, j.Deadlines.Reconnect = 20*time.Second, 5*time.Second // under the race detector half a second is little
	cfg := Config{
		Coordinator: coordinator.Config{Job: j, Dir: t.TempDir(), Base: tinyBase(t)},
		Trainer:     constant(0.02),
	}
	for i := range n {
		cfg.Clients = append(cfg.Clients, &dataset.Set{Labels: j.Labels, Examples: []dataset.Example{
			{Text: fmt.Sprintf("fox %d", i), Label: i % 2}, {Text: "dog", Label: (i + 1) % 2},
		}})
	}
	return cfg
}

// play is Run with a bound, and with what both sides said last where that is met.
func play(t testing.TB, cfg Config) (r Result, err error) {
	t.Helper()
	var mu sync.Mutex
	var progress monitor.Status
	events, device := map[int]edge.Event{}, cfg.Device
	cfg.Coordinator.Progress = func(p monitor.Status) {
		mu.Lock()
		defer mu.Unlock()
		progress = p
	}
	cfg.Device = func(i int, e edge.Event) {
		mu.Lock()
		events[i] = e
		mu.Unlock()
		if device != nil {
			device(i, e)
		}
	}
	watchdog.Wait(t, "the job's end", func() { r, err = Run(t.Context(), cfg) },
		func() string {
			mu.Lock()
			defer mu.Unlock()
			return fmt.Sprintf("coordinator: %+v", progress)
		},
		func() string {
			mu.Lock()
			defer mu.Unlock()
			return fmt.Sprintf("devices: %+v", events)
		})
	return r, err
}

// firstColumns is the mean of B[:, 0] over the adapter: it starts at zero and
// is trained in every round whatever its rank.
func firstColumns(a *model.Adapter) (mean float64) {
	v, n := a.Slice(1), 0
	for _, s := range a.Layout().Spans(1) {
		if s.Kind == model.KindB {
			for _, x := range v[s.Offset : s.Offset+s.Len] {
				mean += float64(x)
				n++
			}
		}
	}
	return mean / float64(n)
}

// A fleet of 24 of which two vanish in mid-round: every round commits, and the
// sum is that of the devices that stayed, divided by the fixed 24.
func TestTwoOfTwentyFourVanish(t *testing.T) {
	cfg := config(t, 24)
	cfg.Faults = map[int]Fault{
		5:  {Version: 2, Turn: 3, Kind: Vanish}, // before its update: not in round 2's sum
		17: {Version: 2, Turn: 5, Kind: Vanish}, // after its update: in round 2's sum
	}
	r, err := play(t, cfg)
	ok(t, err)
	if r.Rounds != 3 || r.Abandoned != 0 {
		t.Fatalf("%d rounds, %d abandoned", r.Rounds, r.Abandoned)
	}
	want := 0.02 * (24.0 + 23 + 22) / 24
	if got := firstColumns(r.Adapter); math.Abs(got-want) > 0.02*want {
		t.Errorf("adapter moved by %.5f, %.5f expected", got, want)
	}
	for i, d := range r.Devices {
		if _, faulty := cfg.Faults[i]; faulty != d.Vanished {
			t.Errorf("device %d vanished: %v", i, d.Vanished)
		} else if !faulty && (d.Err != nil || d.Committed != 3) {
			t.Errorf("device %d: %+v", i, d)
		}
	}
	checkTraffic(t, r.Traffic, 24+24+22)
}

func checkTraffic(t *testing.T, tr Traffic, rounds int) {
	t.Helper()
	b := tr.Breakdown
	if sum := b.Vector + b.Keys + b.Assignment + b.Session + b.Framing + b.Slices + b.Programs + b.Base + b.WebSocket; sum != tr.Up+tr.Down {
		t.Errorf("parts add up to %d, the sockets carried %d", sum, tr.Up+tr.Down)
	}
	if tr.DeviceRounds != rounds {
		t.Errorf("%d device rounds, %d expected", tr.DeviceRounds, rounds)
	}
	for name, v := range map[string]int64{"vector": b.Vector, "keys": b.Keys, "assignment": b.Assignment, "session": b.Session,
		"framing": b.Framing, "slices": b.Slices, "base": b.Base, "websocket": b.WebSocket} {
		if v <= 0 {
			t.Errorf("no bytes for %s: %+v", name, b)
		}
	}
	if tr.PerDeviceRound.Up <= 0 || tr.PerDeviceRound.Down <= 0 {
		t.Errorf("per device and round: %+v", tr.PerDeviceRound)
	}
}

// Devices that lose their connection at any turn, come late or are away for a
// round cost neither the round nor, where they come back in time, their update.
func TestFaultsThatAreSurvived(t *testing.T) {
	cfg := config(t, 9)
	cfg.Coordinator.Job.Deadlines.Reconnect = 5 * time.Second
	cfg.Faults = map[int]Fault{
		1: {Version: 1, Turn: 1, Kind: Drop},
		2: {Version: 2, Turn: 2, Kind: Drop},
		3: {Version: 1, Turn: 3, Kind: Drop},
		4: {Version: 2, Turn: 4, Kind: Drop},
		5: {Version: 1, Turn: 5, Kind: Drop},
		6: {Version: 2, Turn: 3, Kind: Slow, Delay: 50 * time.Millisecond},
	}
	r, err := play(t, cfg)
	ok(t, err)
	want := 3 * 0.02
	if got := firstColumns(r.Adapter); r.Rounds != 3 || r.Dropped != 0 || math.Abs(got-want) > 0.02*want {
		t.Errorf("%d rounds, %d dropped, adapter moved by %.5f, %.5f expected", r.Rounds, r.Dropped, got, want)
	}
	for i, d := range r.Devices {
		if d.Err != nil || d.Committed != 3 {
			t.Errorf("device %d: %+v", i, d)
		}
	}
}

// A hostile device costs itself its place in the round, not the round.
func TestHostileDevices(t *testing.T) {
	cfg := config(t, 9)
	cfg.Faults = map[int]Fault{
		2: {Version: 1, Turn: 2, Kind: Garbage},
		4: {Version: 2, Turn: 1, Kind: Garbage},
		7: {Version: 2, Turn: 3, Kind: Absent},
	}
	r, err := play(t, cfg)
	ok(t, err)
	// The two hostile ones are out from their round on, the absent one in round
	// 2; whether it is back in time for round 3 is a matter of milliseconds.
	least, most := 0.02*(8+6+6)/9, 0.02*(8+6+7)/9
	if got := firstColumns(r.Adapter); r.Rounds != 3 || got < least*0.98 || got > most*1.02 {
		t.Errorf("%d rounds, adapter moved by %.5f, %.5f to %.5f expected", r.Rounds, got, least, most)
	}
	for i, d := range r.Devices {
		if _, faulty := cfg.Faults[i]; !faulty && (d.Err != nil || d.Committed != 3) {
			t.Errorf("honest device %d: %+v", i, d)
		}
	}
}

// A device whose masked update is garbage cannot be told apart before the sum
// is there; the sum is then out of range, its round is charged and releases
// nothing.
func TestPoison(t *testing.T) {
	cfg := config(t, 5)
	cfg.Coordinator.Job.Rounds = 2
	cfg.Faults = map[int]Fault{3: {Version: 1, Turn: 3, Kind: Poison}}
	r, err := play(t, cfg)
	ok(t, err)
	want := 2 * 0.02
	if got := firstColumns(r.Adapter); r.Rounds != 2 || r.Abandoned != 1 || math.Abs(got-want) > 0.02*want {
		t.Errorf("%d rounds, %d abandoned, adapter moved by %.5f, %.5f expected", r.Rounds, r.Abandoned, got, want)
	}
}

// The fleet trains in the coordinator's programs where no trainer is given.
func TestFleetTrainsInPrograms(t *testing.T) {
	cfg := config(t, 4)
	cfg.Trainer = nil
	cfg.Coordinator.Job.Deadlines.Gather = time.Minute // programs are compiled before a device is ready
	cfg.Coordinator.Job.Wire.Uplink = "nf4"
	r, err := play(t, cfg)
	ok(t, err)
	if got := firstColumns(r.Adapter); r.Rounds != 3 || got == 0 {
		t.Errorf("%d rounds, adapter moved by %g", r.Rounds, got)
	}
	for i, d := range r.Devices {
		if d.Err != nil || d.Committed != 3 || d.Refused != 0 {
			t.Errorf("device %d: %+v", i, d)
		}
	}
	// Two ranks at most, each program fetched once by each device.
	if b := r.Traffic.Breakdown; b.Programs <= 0 || b.Programs > 4*2*200_000 {
		t.Errorf("%d bytes of programs", b.Programs)
	}
}

// Devices that hold a past round's slice fetch the difference to it.
func TestDownlinkDifferences(t *testing.T) {
	cfg := config(t, 4)
	var mu sync.Mutex
	fetched := map[string]int{} // by mu
	cfg.Device = func(_ int, e edge.Event) {
		if e.State == edge.Fetching && e.Done == e.Total {
			mu.Lock()
			defer mu.Unlock()
			fetched[e.Text]++
		}
	}
	cfg.Coordinator.Job.Adapter.RankMin = 2 // every slice is of the same rank
	cfg.Trainer = constant(0)               // noise alone moves the adapter: half of it stays within a bf16 step
	_, err := play(t, cfg)
	ok(t, err)
	if fetched["adapter difference"] != 2*4 || fetched["adapter"] != 0 {
		t.Errorf("fetched %v", fetched)
	}
}

// A reproducible run repeats bit for bit.
func TestReproducible(t *testing.T) {
	run := func() []byte {
		cfg := config(t, 5)
		cfg.Coordinator.Job.Rounds = 2
		cfg.Seed = bytes.Repeat([]byte{7}, 32)
		cfg.Coordinator.Seed = cfg.Seed
		r, err := play(t, cfg)
		ok(t, err)
		b, err := model.EncodeAdapter(r.Adapter)
		ok(t, err)
		if r.Private || r.Delivered != nil {
			t.Error("a seeded run claims privacy")
		}
		return b
	}
	if !bytes.Equal(run(), run()) {
		t.Error("two runs differ")
	}
}

func TestRunIsStopped(t *testing.T) {
	cfg := config(t, 4)
	cfg.Coordinator.Job.Cohort.Population = 5 // one that never comes
	cfg.Coordinator.Job.Deadlines.Gather = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var err error
	watchdog.Wait(t, "the stopped run", func() { _, err = Run(ctx, cfg) })
	if err == nil {
		t.Error("no error")
	}
}

func TestRefusals(t *testing.T) {
	if _, err := Run(t.Context(), Config{}); err == nil {
		t.Error("no clients: accepted")
	}
	cfg := config(t, 4)
	cfg.Coordinator.Job.Privacy.ClipNorm = -1
	if _, err := play(t, cfg); err == nil {
		t.Error("negative clip norm: accepted")
	}
	if _, err := os.Stat(cfg.Coordinator.Dir); err != nil {
		t.Error(err)
	}
}
