package coordinator

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/program"
)

// digest identifies the job for the store: every constant, the base, and
// whether it is private.
func digest(t *core.Terms, private bool) ([32]byte, error) {
	b, err := json.Marshal(constants(t.Job))
	if err != nil {
		return [32]byte{}, fmt.Errorf("coordinator: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "starling job 1\x00%t\x00%v\x00%d\x00", private, t.NoiseMultiplier, len(b))
	h.Write(b)
	h.Write(t.BaseRef.SHA256[:])
	h.Write(t.Start)
	return [32]byte(h.Sum(nil)), nil
}

// certifiedBy sets the key that certifies rosters, which differs by run.
func certifiedBy(t *core.Terms, key ed25519.PublicKey) {
	if !t.Contract.Job.Masking.Identified {
		t.Contract.Job.Masking.Authority = [32]byte(key)
	}
}

// announce is what devices are told.
func announce(t *core.Terms, instance [16]byte, private bool) (*wire.Job, error) {
	j := t.Job
	millis := func(d interface{ Milliseconds() int64 }) uint32 {
		return uint32(min(d.Milliseconds(), math.MaxUint32))
	}
	rows := j.BandedRows()
	w := &wire.Job{
		Instance: instance, Name: j.Name, Labels: j.Labels, Base: t.BaseRef,
		RankMin: uint16(j.Adapter.RankMin), HeadOnly: j.Ranks()[0] == 0, Sequence: uint32(j.Adapter.Sequence),
		Announced: j.Training.Announce(), Rounds: uint64(j.Rounds),
		Privacy: wire.Privacy{
			Private: private, SamplingRate: j.Cohort.SamplingRate, NoiseMultiplier: t.NoiseMultiplier * j.NoiseScale(),
			Delta: t.Budget.Delta, Budget: t.Budget.Epsilon,
			Population: uint64(j.BudgetPopulation()), Simulated: j.Simulated(), Accountant: string(t.Budget.Accountant),
			Noise: j.Privacy.Noise, OwnNoise: t.Own.Multiplier, Honest: t.Own.Honest,
			Observer:   string(t.Budget.Observer),
			Separation: rows.Separation, Band: rows.Band, Eighths: rows.Eighths,
		},
		Deadlines: wire.Deadlines{
			Gather: millis(j.Deadlines.Gather), Key: millis(j.Deadlines.Key), Share: millis(j.Deadlines.Share),
			Collect: millis(j.Deadlines.Collect), Confirm: millis(j.Deadlines.Confirm), Unmask: millis(j.Deadlines.Unmask),
		},
	}
	contract.AnnounceMethod(t.Method, w)
	if j.Training.Dual {
		w.Dual = j.UnitsPerDevice()
	}
	w.Steps, w.ClipNorm, w.Bounds = uint32(j.Training.Steps), j.Privacy.ClipNorm, t.Bounds()
	w.HeldOut, w.Scored = j.Training.HeldOut, uint32(j.Training.Scored)
	if j.Privacy.None {
		w.Privacy = wire.Privacy{SamplingRate: j.Cohort.SamplingRate, Population: uint64(j.Cohort.Population)}
	}
	if j.Providers.Max > 0 {
		w.ProviderRate = j.Providers.SamplingRate
	}
	w.Published.Tokenizer = sha256.Sum256(t.Base.Tokenizer)
	t.Contract.Job.Announce(w)
	var err error
	w.Recipe, err = program.Recipe(j)
	return w, err
}

// Announcement is what a coordinator of the job over the base would announce to devices, but for the
// keys that a run draws.
func Announcement(j Job, base *model.Base) ([]byte, error) {
	_, w, err := planned(j, base)
	if err != nil {
		return nil, err
	}
	return w.AppendBinary(nil)
}

// planned is the announcement of a job that nobody runs yet. Where a run will have a log, its key stands for one.
func planned(j Job, base *model.Base) (*core.Terms, *wire.Job, error) {
	if err := j.Served(); err != nil {
		return nil, nil, err
	}
	t, err := core.NewTerms(j, base)
	if err != nil {
		return nil, nil, err
	}
	w, err := announce(t, [16]byte{}, !j.Privacy.None)
	if err == nil && !j.Shard.Anonymous {
		w.LogKey = [32]byte{1}
	}
	return t, w, err
}

func seedBytes(seed uint64) []byte { return binary.LittleEndian.AppendUint64(nil, seed) }
