package edge

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// ErrPolicy is a job that asks for more than the device's owner allows: see PolicyErrors.
var ErrPolicy = errors.New("edge: the job is outside this device's policy")

// A Policy is what a device's owner lets a coordinator ask for. The coordinator has no influence on
// it: the device checks the announced job against it when it joins, and the plan of every round.
// Together the limits ensure that a sum is not one device's data: enough devices are in it, enough
// of them are presumed to be invented, and the update is small and coarse enough to hide among the
// others. OwnNoise, ExampleNoise, ExampleBits, Bits, Examples and Tensors protect the data even if everybody else lies.
type Policy struct {
	// OwnNoise is the least noise that this device must add to what it sends: its standard
	// deviation divided by the clip norm. 0 requires none: then whoever adds up the updates is
	// trusted to add noise. Default 0.1: alone in its sum, a round reveals 72 bits at most.
	OwnNoise float64 `yaml:"own_noise"`
	// ExampleNoise is the least noise over what one example can move: own noise times the groups
	// that the device's examples are in. Default 0: ExampleBits asks for 2.46 over 20 rounds as it is.
	ExampleNoise float64 `yaml:"example_noise"`
	// ExampleBits limits what all jobs that this data is given to could together tell about any one
	// example, in bits, if no other device's update were in any sum: 1/(2 (k v)^2 ln 2) a round at
	// own noise v in k groups. The account counts them, whatever coordinator, identity or process it
	// was. 0: no limit. Default 3: see docs/RATIONALE.md.
	ExampleBits float64 `yaml:"example_bits"`
	// Bits limits in the same way what they could tell about all of the data: 1/(2 v^2 ln 2) a
	// round. 0: no limit. Default 10000, 1.2 kB.
	Bits float64 `yaml:"bits"`
	// Examples is the least number of distinct examples that an update averages, each
	// provider's in a job that protects those. Default 16.
	Examples int `yaml:"examples"`
	// Tensors are what may be trained: classes of model.Classes, tensors of the base or
	// modules by the ends of their names, or any. Default lora, head, biases and adapters:
	// neither embeddings, whose rows are words, nor whole matrices or norms.
	Tensors []string `yaml:"tensors"`
	// Bases are what may be trained over: known (see package model/known, and Config's
	// Known and Base), any, or SHA-256 of bases in hexadecimal. Default known.
	Bases []string `yaml:"bases"`
	// Leak is the greatest share of an update's tokens that trying the job before joining it
	// may find, 0..1, where it is tried: see Config's Leaks. Default 0.1.
	Leak float64 `yaml:"leak"`
	// Shard is the least number of devices whose updates are added up, at least 2.
	// Default 8.
	Shard int `yaml:"shard"`
	// Corrupt is the least fraction of a shard, in 0..1, that the threshold must
	// presume to collude with the coordinator. Default 0.05.
	Corrupt float64 `yaml:"corrupt"`
	// BreachBits asks that a shard be broken with probability 2^-BreachBits at
	// most. Default 40.
	BreachBits int `yaml:"breach_bits"`
	// SemiHonest accepts jobs that presume a coordinator which follows the
	// protocol. Default false.
	SemiHonest bool `yaml:"semi_honest"`
	// Unlogged accepts jobs without a log of enrolled keys, whose rosters name nobody and whose coordinator deals devices as
	// it likes: those that it invents look like any other. Default false; true in LocalPolicy.
	Unlogged bool `yaml:"unlogged"`
	// ClipNorm is the greatest L2 norm that an update may be left; each provider's, in a
	// job that protects those. Default 1000: four times the largest default of a job within the
	// other limits. Rounding and noise are in proportion to the norm, so that it refuses absurd ones alone.
	ClipNorm float64 `yaml:"clip_norm"`
	// Rank is the greatest rank of the adapter. Default 32.
	Rank int `yaml:"rank"`
	// Values is the most values that an update may have at the job's largest rank: a
	// method that trains whole tensors has no rank to limit it. Default 4000000: rank
	// 32 in queries and values of a model of BERT-large's size.
	Values int `yaml:"values"`
	// Steps and Batch are the most local steps of a round and examples of a step.
	// Defaults 100 and 64.
	Steps int `yaml:"steps"`
	Batch int `yaml:"batch"`
	// Work is the most that a round's training may take in all, and that making its
	// program again may, in units of an eighth of an instruction (docs/WASM.md). Default 1e13: some six minutes of
	// dense vector code on one core.
	Work float64 `yaml:"work"`
	// Memory is the most that a training program may take, the base's weights
	// included, in MiB, 1..4095. Default 1024.
	Memory int `yaml:"memory"`
	// Uplinks are the masked schemes that updates may be sent in: the coarser, the
	// less one update tells. Default all of at most 31 symbols: int5, nf4 and coarser.
	Uplinks []string `yaml:"uplinks"`
	// Start is how wide the bounds of what a round begins with may be, over the published ones
	// (docs/JOB.md, bounds). A start beyond its job's bounds is refused before anything is
	// trained on it. Default 1; .inf checks neither.
	Start float64 `yaml:"start"`
	// Rounds is the most rounds that a job may announce. Default 10000.
	Rounds int `yaml:"rounds"`
	// Epsilon is the most that all jobs together may cost the data, as its account
	// counts it: every contribution in full, at the noise that the job announces.
	// Default 0: no limit.
	Epsilon float64 `yaml:"epsilon"`
	// RoundsADay is the most rounds begun within 24 hours. Default 500.
	RoundsADay int `yaml:"rounds_a_day"`
	// Programs are the SHA-256 of training programs, in hexadecimal, that may run
	// without being made again on this device; 'starling program verify' prints a
	// job's. Default none.
	Programs []string `yaml:"programs"`
	// Peers are identities, Ed25519 keys in hexadecimal: a shard with anybody else
	// in it is refused. It needs a job with identified rosters. Default none: any.
	Peers []string `yaml:"peers"`
	// PeerAge is how long ago the other devices of a shard must have been enrolled, as far as this
	// device can tell from the job's log. More recent ones are presumed to be the coordinator's,
	// and a shard with more of them than it withstands is refused. Default 0: any age.
	PeerAge time.Duration `yaml:"peer_age"`
	// Groups is the least number of groups into which the devices of a round must be dealt by their
	// own keys: a coordinator that wants to be alone with this device's update then needs that many
	// times as many devices of its own. 0: it may choose who is in a shard. Default 0, since a
	// fleet of one shard has no groups.
	Groups int `yaml:"groups"`
	// Silent makes the moments at which this device sends independent of the data: they follow from
	// the job and from how long made-up examples take here, and whatever is not ready by then is
	// sent as zeros. Default true; false in LocalPolicy.
	Silent bool `yaml:"silent"`
	// Log is the key of a witness, NAME+HASH+KEY, which must have signed the head of the job's
	// log that a round's plan binds. Default none.
	Log string `yaml:"log"`
}

// DefaultPolicy is what a device allows a coordinator that somebody else may run, wherever its address leads.
func DefaultPolicy() Policy {
	return Policy{
		Shard: 8, Corrupt: 0.05, BreachBits: 40, ClipNorm: 1000, Rank: 32, Start: 1, Values: 4_000_000, Steps: 100, Batch: 64, Work: 1e13, Memory: 1024,
		Uplinks: coarse(), Rounds: 10_000, RoundsADay: 500,
		OwnNoise: 0.1, ExampleBits: 3, Bits: 10_000, Examples: 16, Leak: 0.1, Silent: true,
		Tensors: []string{string(model.ClassLoRA), string(model.ClassHead), string(model.ClassBiases), string(model.ClassAdapters)},
		Bases:   []string{knownBases},
	}
}

// coarse are the masked schemes of at most 31 symbols, fewest first.
func coarse() (names []string) {
	for _, name := range quant.SchemeNames() {
		if s, err := quant.Lookup(name); err == nil && s.MaxSymbol() <= 15 {
			names = append(names, name)
		}
	}
	return names
}

// LocalPolicy is what a device allows a coordinator that its owner runs on the same machine and that
// could read the device's file anyway. It allows shards of three devices, none of them presumed invented, and
// requires no noise of the device's own, so that a handful of devices can try things out. The rest
// is DefaultPolicy's.
func LocalPolicy() Policy {
	p := DefaultPolicy()
	p.Shard, p.Corrupt, p.BreachBits = 3, 0, 0
	p.OwnNoise, p.ExampleBits, p.Bits, p.Examples, p.Tensors = 0, 0, 0, 1, []string{anything}
	p.Bases, p.Leak, p.Silent, p.Unlogged = []string{anything}, 1, false, true
	return p
}

// TrustingPolicy refuses nothing that the protocol allows: for a process that
// holds coordinator, devices and data alike, as simulations do.
func TrustingPolicy() Policy {
	return Policy{
		Shard: 2, SemiHonest: true, Unlogged: true, ClipNorm: math.Inf(1), Start: math.Inf(1), Rank: wire.MaxRank, Values: math.MaxInt, Steps: 1 << 20, Batch: 1 << 16, Work: math.Inf(1), Memory: 4095,
		Uplinks: []string{anything}, Rounds: math.MaxInt, RoundsADay: math.MaxInt,
		Examples: 1, Leak: 1, Tensors: []string{anything}, Bases: []string{anything},
	}
}

// anything is the word that allows every scheme, and every tensor.
const anything = "any"

// PolicyFor is the policy of a device whose owner has chosen none toward the coordinator at where, a
// join token or an http(s) URL: LocalPolicy if the owner says that it is their own (trustLocal), else
// DefaultPolicy. An address alone says nothing of who runs a coordinator: a port of this machine may
// be forwarded to another one (ssh -L, kubectl port-forward, an editor). The error is ErrConfig if
// the owner says so of an address elsewhere.
func PolicyFor(where string, trustLocal bool) (Policy, error) {
	switch {
	case !trustLocal:
		return DefaultPolicy(), nil
	case !OnLoopback(where):
		if t, err := wire.ParseToken(where); err == nil {
			where = t.URL
		}
		return Policy{}, fmt.Errorf("%w: %.200q is not on this machine, and only a coordinator there can be trusted as one's own (--trust-local): "+
			"leave that out, or name the limits that you want to widen", ErrConfig, where)
	}
	return LocalPolicy(), nil
}

// OnLoopback reports whether a join token or an http(s) URL names a port of this machine, which may
// lead to any other.
func OnLoopback(where string) bool {
	if t, err := wire.ParseToken(where); err == nil {
		where = t.URL
	}
	return loopback(where)
}

// loopback reports whether an address is on this machine whatever names resolve to.
func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname()) // package net would be a hundredth of what a browser loads
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Validate returns an error that names the first key without a meaningful value.
func (p *Policy) Validate() error {
	in := func(key string, v, least, most int) error {
		if v < least || v > most {
			return fmt.Errorf("%w: policy: %s is %d, want %d..%d", ErrConfig, key, v, least, most)
		}
		return nil
	}
	over := func(key string, v float64) error {
		if !(v > 0) {
			return fmt.Errorf("%w: policy: %s is %v, must be positive", ErrConfig, key, v)
		}
		return nil
	}
	err := errors.Join(
		in("shard", p.Shard, 2, secagg.MaxShard),
		in("breach_bits", p.BreachBits, 0, 1000),
		in("rank", p.Rank, 1, wire.MaxRank),
		in("values", p.Values, 1, math.MaxInt),
		in("steps", p.Steps, 1, 1<<20),
		in("batch", p.Batch, 1, 1<<16),
		in("memory", p.Memory, 1, 4095),
		in("rounds", p.Rounds, 1, math.MaxInt),
		in("rounds_a_day", p.RoundsADay, 1, math.MaxInt),
		in("examples", p.Examples, 1, math.MaxInt),
		in("groups", p.Groups, 0, wire.MaxGroups),
		over("clip_norm", p.ClipNorm),
		over("start", p.Start),
		over("work", p.Work))
	if !(p.Corrupt >= 0 && p.Corrupt < 1) {
		err = errors.Join(err, fmt.Errorf("%w: policy: corrupt is %v, want 0..1", ErrConfig, p.Corrupt))
	}
	if !(p.Epsilon >= 0) {
		err = errors.Join(err, fmt.Errorf("%w: policy: epsilon is %v, must be positive, or 0 for no limit", ErrConfig, p.Epsilon))
	}
	err = errors.Join(err, p.validateFloor())
	for key, list := range map[string][]string{"programs": p.Programs, "peers": p.Peers} {
		for _, s := range list {
			if b, e := hex.DecodeString(s); e != nil || len(b) != 32 || s != strings.ToLower(s) {
				err = errors.Join(err, fmt.Errorf("%w: policy: %s: %.80q is not 64 hexadecimal digits in lower case", ErrConfig, key, s))
			}
		}
	}
	if p.PeerAge < 0 {
		err = errors.Join(err, fmt.Errorf("%w: policy: peer_age is %v, must not be negative", ErrConfig, p.PeerAge))
	}
	if p.Log != "" {
		if _, e := log.ParseWitness(p.Log); e != nil {
			err = errors.Join(err, fmt.Errorf("%w: policy: log must be the key of a witness: %w", ErrConfig, e))
		}
	}
	if len(p.Uplinks) == 0 {
		err = errors.Join(err, fmt.Errorf("%w: policy: uplinks is empty: nothing could be sent", ErrConfig))
	}
	return err
}

// A PolicyError is one limit of the owner's policy that a job or a plan exceeds.
type PolicyError struct {
	Key  string `json:"key"`  // of the policy file; the flag is the same with dashes
	What string `json:"what"` // what is asked for
	Why  string `json:"why"`  // what it would mean for the owner
	Have string `json:"have"` // asked for, as the flag would be given
	Want string `json:"want"` // the limit
}

// Flag is the flag of 'starling join' that sets the limit.
func (e *PolicyError) Flag() string { return "--" + strings.ReplaceAll(e.Key, "_", "-") }

func (e *PolicyError) Error() string {
	return fmt.Sprintf("%s: %s; your limit is %s. %s. If you want it nevertheless: %s=%s, or %s in your policy file",
		e.Key, e.What, e.Want, e.Why, e.Flag(), e.Have, e.Key)
}

// The reasons, as an owner reads them.
const (
	whyShard  = "What you send is hidden among the others' updates only: the fewer they are, the less it hides"
	whyForged = "A coordinator that invents the other devices of your shard reads your update alone"
	whyClip   = "The larger an update may be, the more of your data fits into it"
	whyFine   = "The finer an update is written, the more of your data fits into it"
	whyValues = "The more values an update has, the more of your data fits into it"
	whyWork   = "It is this device's time and current"
	whyMemory = "It is this device's memory; the job's training.memory, training.micro_batch and base_format make it less"
	whyRounds = "Every round tells a little more about your data"
)

// checkJob checks an announced job against the policy: everything that is
// outside of it, so that an owner who wants it decides once. had is what this data has told other jobs.
func (p *Policy) checkJob(j *wire.Job, had Shown) error {
	var found []error
	refuse := func(bad bool, key, what, why, have, want string) {
		if bad {
			found = append(found, &PolicyError{Key: key, What: what, Why: why, Have: have, Want: want})
		}
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	whole := strconv.Itoa
	corrupt := float64(j.CorruptPPM) / 1e6
	refuse(int(j.ShardFloor) < p.Shard, "shard", fmt.Sprintf("the job adds up as few as %d devices", j.ShardFloor), whyShard,
		whole(int(j.ShardFloor)), "at least "+whole(p.Shard))
	refuse(j.CorruptPPM < uint32(math.Round(p.Corrupt*1e6)), "corrupt", fmt.Sprintf("the job withstands %s of a shard's devices colluding with the coordinator", number(corrupt)), whyForged,
		number(corrupt), "at least "+number(p.Corrupt))
	refuse(int(j.BreachBits) < p.BreachBits, "breach_bits", fmt.Sprintf("the job lets a shard be broken with probability 2^-%d", j.BreachBits), whyForged,
		whole(int(j.BreachBits)), "at least "+whole(p.BreachBits))
	refuse(j.SemiHonest && !p.SemiHonest, "semi_honest", "the job presumes a coordinator that follows the protocol", whyForged,
		"true", "false")
	refuse(!slices.Contains(p.Uplinks, j.Uplink) && !slices.Contains(p.Uplinks, anything), "uplinks", fmt.Sprintf("updates are to be written as %q", j.Uplink), whyFine,
		j.Uplink, strings.Join(p.Uplinks, ", "))
	refuse(int(j.RankMax) > p.Rank, "rank", fmt.Sprintf("the job trains up to rank %d", j.RankMax), whyClip,
		whole(int(j.RankMax)), "at most "+whole(p.Rank))
	refuse(len(p.Peers) > 0 && !j.Identified, "peers", "the job's rosters do not say who is in them", whyForged,
		"", "shards of the named devices alone")
	logged := j.LogKey != [32]byte{}
	refuse(!logged && !p.Unlogged, "unlogged", "the job keeps no log of its devices, and its coordinator alone says who is in a shard", whyForged,
		"true", "false")
	refuse(p.PeerAge > 0 && !logged, "peer_age", "the job keeps no log of when its devices were enrolled", whyForged,
		"0s", fmt.Sprintf("peers enrolled at least %v ago", p.PeerAge))
	refuse(p.Groups > 0 && !j.Dealt, "groups", "the job's coordinator chooses who is in a shard", whyForged,
		"0", fmt.Sprintf("at least %d groups that devices draw themselves", p.Groups))
	refuse(p.Log != "" && !logged, "log", "the job keeps no log of its devices that anybody could witness", whyForged,
		"", "heads that the witness has signed")
	refuse(int(j.Batch) > p.Batch, "batch", fmt.Sprintf("each step takes %d examples", j.Batch), whyWork,
		whole(int(j.Batch)), "at most "+whole(p.Batch))
	refuse(j.Rounds > uint64(p.Rounds), "rounds", fmt.Sprintf("the job is to have %d rounds", j.Rounds), whyRounds,
		strconv.FormatUint(j.Rounds, 10), "at most "+whole(p.Rounds))
	found = append(found, p.checkNoise(j, had)...)
	found = append(found, p.checkBounds(j)...)
	found = append(found, p.checkPlanned(j)...)
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%w", ErrPolicy, errors.Join(found...))
}

// checkValues checks the size of the job's largest update against the policy.
func (p *Policy) checkValues(n int) error {
	if n <= p.Values {
		return nil
	}
	return fmt.Errorf("%w:\n%w", ErrPolicy, &PolicyError{"values", fmt.Sprintf("an update has up to %d values", n), whyValues,
		strconv.Itoa(n), "at most " + strconv.Itoa(p.Values)})
}

// checkPlan checks a round's plan of a job against the policy.
func (p *Policy) checkPlan(j *wire.Job, pl *wire.Plan) error {
	if found := p.planBeyond(j, pl); len(found) > 0 {
		return found[0]
	}
	return nil
}

// planBeyond lists all that a round's plan asks for beyond the policy.
func (p *Policy) planBeyond(j *wire.Job, pl *wire.Plan) (found []error) {
	if n := (int(pl.Steps) + int(j.Scored)) * max(1, int(j.Groups)); n > p.Steps {
		found = append(found, &PolicyError{"steps", fmt.Sprintf("the round takes %d local steps", n), whyWork,
			strconv.Itoa(n), "at most " + strconv.Itoa(p.Steps)})
	}
	if pl.ClipNorm > p.ClipNorm {
		found = append(found, &PolicyError{"clip_norm", fmt.Sprintf("the round leaves updates a norm of %.6g", pl.ClipNorm), whyClip,
			fmt.Sprintf("%.6g", pl.ClipNorm), fmt.Sprintf("at most %.6g", p.ClipNorm)})
	}
	if int(pl.Groups) < p.Groups {
		found = append(found, &PolicyError{"groups", fmt.Sprintf("the round's devices are dealt into %d groups", pl.Groups), whyForged,
			strconv.Itoa(int(pl.Groups)), "at least " + strconv.Itoa(p.Groups)})
	}
	if err := p.checkAverage(j, pl); err != nil {
		found = append(found, err)
	}
	return found
}

// checkRoster refuses a shard with anybody in it whom the owner did not name.
func (p *Policy) checkRoster(entries []secagg.Entry, own [32]byte) error {
	if len(p.Peers) == 0 {
		return nil
	}
	for _, e := range entries {
		if e.Keys.Verify != own && !slices.Contains(p.Peers, hex.EncodeToString(e.Keys.Verify[:])) {
			return fmt.Errorf("device %x is in the shard and not among the policy's peers", e.Keys.Verify[:6])
		}
	}
	return nil
}

// checkWork checks what a program was proved to take against the policy.
func checkWork(units, most float64) error {
	if units <= most {
		return nil
	}
	return &PolicyError{"work", fmt.Sprintf("the round's training may take %.3g units of work, some %.3g minutes", units, units/unitsAMinute), whyWork,
		fmt.Sprintf("%.3g", units*1.01), fmt.Sprintf("at most %.3g", most)}
}

// mostPages are those of the largest memory that a program can have, 4 GiB less one.
const mostPages = 1<<16 - 1

// checkMemory checks a program's memory, in pages of 64 KiB, against the policy, in MiB;
// 0 is none of its own.
func checkMemory(pages uint32, most int) error {
	mib := (int(pages) + 15) / 16
	if most == 0 || mib <= most {
		return nil
	}
	return &PolicyError{"memory", fmt.Sprintf("the training program takes %d MiB of memory", mib), whyMemory,
		strconv.Itoa(mib), fmt.Sprintf("at most %d", most)}
}

// fewestHeld is how many examples must fit into the memory that an owner gives, however
// few a step takes: each of the device's is encoded at least once.
const fewestHeld = 64

// checkBatch checks the memory of a step's examples against the policy: base and job say
// how long each is.
func (p *Policy) checkBatch(columns []task.Column, batch int) error {
	batch = max(batch, fewestHeld)
	mib := math.Ceil(task.RowBytes(columns) * float64(batch) / (1 << 20))
	if mib <= float64(p.Memory) {
		return nil
	}
	return fmt.Errorf("%w:\n%w", ErrPolicy, &PolicyError{"memory", fmt.Sprintf("%d examples take %.0f MiB of memory", batch, mib),
		"It is this device's memory; a smaller training.batch and shorter examples make it less",
		fmt.Sprintf("%.0f", min(mib, 4095)), fmt.Sprintf("at most %d", p.Memory)})
}

// unitsAMinute is about what one core does in dense vector code.
const unitsAMinute = 1.6e12
