package bandwidth

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/sim"
	"github.com/starling-fl/starling/internal/leaf/l2"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// Parts divides a device's bytes of one round by purpose, up and down together.
type Parts struct {
	Vector     float64 `json:"vector"`     // the update
	Slices     float64 `json:"slices"`     // the adapter's values, HTTP included
	Keys       float64 `json:"keys"`       // keys, shares, rosters, signatures
	Assignment float64 `json:"assignment"` // plans
	Session    float64 `json:"session"`    // joining (once), acknowledgements, outcomes
	Framing    float64 `json:"framing"`    // message heads around vectors and keys
	WebSocket  float64 `json:"websocket"`  // frame heads, masks, the HTTP upgrade
}

// over is each part divided by n.
func (p Parts) over(n float64) Parts {
	return Parts{Vector: p.Vector / n, Slices: p.Slices / n, Keys: p.Keys / n, Assignment: p.Assignment / n, Session: p.Session / n,
		Framing: p.Framing / n, WebSocket: p.WebSocket / n}
}

// measurement is what one setting came to, bytes a device and round.
type measurement struct {
	Up, Down  float64
	Parts     Parts
	Base      float64 // base weights, once a device
	Quantized float64 // bytes of the update before mask and codec
	Width     int     // bits of a coordinate on the ring; 0: not masked
	Padded    int     // coordinates of the update on the wire
	// Recompressed is the size of the update's bytes after the codec over that before: the gain of compressing a
	// masked vector.
	Recompressed float64
	// OwnVariance is the variance of the mean under devices' own noise, rounding included,
	// over that of the same noise on no lattice; 0 without.
	OwnVariance float64
	fidelity
}

// fidelity compares the mean update that arrives, before noise, with the mean
// of the clipped updates.
type fidelity struct {
	RelativeMSE float64
	Cosine      float64
	NoiseRatio  float64 // squared error over the expected squared DP noise
}

// compare needs the variance of the DP noise on one coordinate of the mean.
func compare(got []float32, want []float64, noise float64) fidelity {
	var diff, dot, size, length float64
	for i, w := range want {
		g := float64(got[i])
		diff += (g - w) * (g - w)
		dot += g * w
		size += w * w
		length += g * g
	}
	return fidelity{RelativeMSE: diff / size, Cosine: dot / math.Sqrt(size*length), NoiseRatio: diff / (float64(len(want)) * noise)}
}

// clipped is an update at a norm of at most so much.
func clipped(x []float32, norm float64) []float32 {
	x = slices.Clone(x)
	if before := l2.Norm(x); before > norm {
		for i, v := range x {
			x[i] = float32(float64(v) * norm / before)
		}
	}
	return x
}

// meanOf returns the mean of updates clipped to norm.
func meanOf(updates [][]float32, norm float64) []float64 {
	mean := make([]float64, len(updates[0]))
	for _, u := range updates {
		for i, v := range clipped(u, norm) {
			mean[i] += float64(v) / float64(len(updates))
		}
	}
	return mean
}

// The population whose noise is simulated: what is measured is bytes and the error
// of quantization, and a few devices alone would need more noise than signal.
const (
	simulatedPopulation = 1_000_000
	simulatedCohort     = 10_000
	ownEpsilon          = 10_000 // so large that what devices add is own_noise, and no more
)

// replay is a trainer that hands out given updates in turn: the measurement is
// of bytes, not of training.
type replay struct {
	mu      sync.Mutex
	updates [][]float32
	next    int // by mu
}

func (r *replay) Train(_ context.Context, t edge.Task) ([]float32, error) {
	r.mu.Lock()
	u := r.updates[r.next%len(r.updates)]
	r.next++
	r.mu.Unlock()
	if len(u) != len(t.Start) {
		return nil, fmt.Errorf("bandwidth: update of %d values for a task of %d", len(u), len(t.Start))
	}
	return append([]float32(nil), u...), nil
}

func (*replay) Close() error { return nil }

// job is the job that a setting measures: every device in every round.
func (set *setting) job(s *Subject) job.Job {
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "bandwidth", s.labels, set.Rounds
	j.Adapter.RankMin, j.Adapter.RankMax, j.Adapter.Alpha = s.rank, s.rank, s.layout.Method.Alpha
	j.Adapter.Sequence = 16
	j.Cohort.Population, j.Cohort.Floor = set.Cohort, set.Cohort
	shards := (set.Cohort + set.Shard - 1) / set.Shard
	j.Shard.Size = set.Shard
	if shards == 1 {
		j.Shard.Groups = 1 // dealt, as cohorts that coins draw are; several groups would not be of one size
	}
	j.Shard.Floor = min(set.Cohort/shards, (set.Shard+1)/2)
	if j.Shard.Floor < 20 {
		// Too few for the default protection: a bare majority.
		j.Shard.Corrupt, j.Shard.BreachBits = 0, 0
	}
	j.Privacy.ClipNorm = set.Clip
	j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = simulatedPopulation, simulatedCohort
	if set.OwnNoise > 0 { // of so few that an epsilon says nothing; what is measured is their ring
		j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort, j.Privacy.Epsilon = 0, 0, ownEpsilon
		j.Privacy.Noise, j.Privacy.OwnNoise = job.NoiseDevices, set.OwnNoise
	}
	j.Wire = job.Wire{Uplink: set.Scheme, Downlink: set.Downlink, DownlinkCodec: set.Codec}
	for _, d := range []*time.Duration{&j.Deadlines.Gather, &j.Deadlines.Key, &j.Deadlines.Share, &j.Deadlines.Collect,
		&j.Deadlines.Confirm, &j.Deadlines.Unmask, &j.Deadlines.Reconnect} {
		*d = 10 * time.Minute // a measurement waits for every device
	}
	return j
}

// measureMasked runs a job with real devices against a real coordinator and
// counts at the devices' sockets.
func measureMasked(ctx context.Context, set *setting, s *Subject) (measurement, error) {
	var m measurement
	dir, err := os.MkdirTemp("", "starling-bandwidth-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	cfg := sim.Config{
		Coordinator: coordinator.Config{Job: set.job(s), Dir: dir, Base: s.base},
		Trainer:     &replay{updates: s.updates},
	}
	for range set.Cohort {
		cfg.Clients = append(cfg.Clients, &dataset.Set{Labels: s.labels, Examples: []dataset.Example{{Text: "a model"}}})
	}
	r, err := sim.Run(ctx, cfg)
	if err != nil {
		return m, err
	}
	if r.Abandoned != 0 || r.Dropped != 0 || r.Absent != 0 || r.Traffic.DeviceRounds != set.Cohort*set.Rounds {
		return m, fmt.Errorf("bandwidth: %d rounds abandoned, %d devices dropped and %d absent: the figures would not be those of a round", r.Abandoned, r.Dropped, r.Absent)
	}
	n := float64(r.Traffic.DeviceRounds)
	b := r.Traffic.Breakdown
	m.Up, m.Down = r.Traffic.PerDeviceRound.Up, r.Traffic.PerDeviceRound.Down
	m.Base = float64(b.Base) / float64(set.Cohort)
	m.Parts = Parts{Vector: float64(b.Vector), Slices: float64(b.Slices), Keys: float64(b.Keys), Assignment: float64(b.Assignment),
		Session: float64(b.Session), Framing: float64(b.Framing), WebSocket: float64(b.WebSocket)}.over(n)
	return m, m.arithmetic(set, s)
}

// arithmetic sends the same updates through encoding, summing and decoding,
// without noise, and looks at what a masked vector would compress to.
func (m *measurement) arithmetic(set *setting, s *Subject) error {
	own := contract.Own{Noise: set.OwnNoise, Delta: set.job(s).Delta(), Rounds: uint64(set.Rounds)}
	terms, err := contract.Job{Uplink: set.Scheme, Masking: secagg.Config{ShardMax: set.Shard}, Own: own}.Terms()
	if err != nil {
		return err
	}
	var seed [32]byte
	rand.Read(seed[:])
	l, err := terms.Lattice(s.Params(), set.Clip, seed)
	if err != nil {
		return err
	}
	v, err := terms.Vector(l, dp.CountCode{}, dp.FigureCode{})
	if err != nil {
		return err
	}
	m.Width, m.Padded = terms.Bits(v), l.D()
	alone, err := quant.Width(terms.Scheme, 1)
	if err != nil {
		return err
	}
	m.Quantized = float64((l.D()*alone + 7) / 8)
	sum, symbols := make([]int64, l.D()), make([]int32, l.D())
	for _, u := range s.updates {
		if _, err := l.EncodeInto(symbols, u, rand.Reader); err != nil {
			return err
		}
		for i, q := range symbols {
			sum[i] += int64(q)
		}
	}
	n := float64(len(s.updates))
	got, err := l.DecodeMean(sum, n)
	if err != nil {
		return err
	}
	// On the sum of symbols the noise has variance z^2*B2 a coordinate.
	step := l.Delta() / (n * math.Erf(terms.Scheme.ClipPoint()/math.Sqrt2))
	want := meanOf(s.updates, set.Clip)
	m.fidelity = compare(got, want, set.NoiseMultiplier*set.NoiseMultiplier*float64(l.B2())*step*step)
	if set.OwnNoise > 0 {
		// What the mean is off by, beside what it would be with no lattice: own noise of n
		// devices, v S each, in every value.
		off := 0.0
		for i, w := range want {
			off += (float64(got[i]) - w) * (float64(got[i]) - w) / float64(len(want))
		}
		exact := set.OwnNoise * set.OwnNoise * set.Clip * set.Clip / n
		m.OwnVariance = (v.Own.Float()*n*step*step + off) / exact
	}

	// A masked vector is uniform on the ring, whatever it masks: as many random bytes stand for it.
	masked := make([]byte, (m.Width*m.Padded+7)/8)
	rand.Read(masked)
	m.Recompressed, err = recompressed(set.Codec, masked)
	return err
}

// recompressed returns the size of data after the codec, relative to before.
func recompressed(codec string, data []byte) (float64, error) {
	c, err := quant.LookupCodec(codec)
	if err != nil {
		return 0, err
	}
	out, err := c.Append(nil, data)
	return float64(len(out)) / float64(len(data)), err
}
