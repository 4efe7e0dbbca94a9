package device

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/participation"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/model"
)

// policyFlags are an owner's limits as given on the command line: each wins over
// the policy file, which wins over the defaults.
type policyFlags struct {
	file  string
	local bool
	given edge.Policy
	flags *pflag.FlagSet
}

func (p *policyFlags) add(fl *pflag.FlagSet) {
	p.flags = fl
	g, d, here := &p.given, edge.DefaultPolicy(), edge.LocalPolicy()
	says := func(text string, values ...any) string { return fmt.Sprintf(text, values...) }
	fl.StringVar(&p.file, "policy", "", "file of limits on what a coordinator may ask for (YAML); each key is a flag, too")
	fl.BoolVar(&p.local, "trust-local", false, "the coordinator is your own, on this machine: its limits are laxer, and nothing is tried before joining")
	fl.IntVar(&g.Shard, "shard", 0, says("least devices whose updates are added up (default %d; %d with --trust-local)", d.Shard, here.Shard))
	fl.Float64Var(&g.Corrupt, "corrupt", 0, says("least fraction of a shard presumed to collude with the coordinator (default %v; %v with --trust-local)", d.Corrupt, here.Corrupt))
	fl.IntVar(&g.BreachBits, "breach-bits", 0, says("least bits against a broken shard (default %d; %d with --trust-local)", d.BreachBits, here.BreachBits))
	fl.BoolVar(&g.SemiHonest, "semi-honest", false, "accept jobs that presume a coordinator which follows the protocol")
	fl.BoolVar(&g.Unlogged, "unlogged", false, "accept jobs without a log of enrolled keys, whose coordinator alone says who is in a shard (default false; true with --trust-local)")
	fl.Float64Var(&g.ClipNorm, "clip-norm", 0, says("greatest norm that an update may be left (default %v)", d.ClipNorm))
	fl.Float64Var(&g.Start, "start", 0, says("how wide the bounds of what rounds begin with may be, over the published ones; inf checks neither (default %v)", d.Start))
	fl.IntVar(&g.Rank, "rank", 0, says("greatest rank of the adapter (default %d)", d.Rank))
	fl.IntVar(&g.Values, "values", 0, says("most values of an update (default %d)", d.Values))
	fl.IntVar(&g.Steps, "steps", 0, says("most local steps of a round (default %d)", d.Steps))
	fl.IntVar(&g.Batch, "batch", 0, says("most examples of a step (default %d)", d.Batch))
	fl.Float64Var(&g.Work, "work", 0, says("most work of a round, in eighths of an instruction (default %.0e, some six minutes)", d.Work))
	fl.IntVar(&g.Memory, "memory", 0, says("most memory of a training program, the base included, in MiB (default %d)", d.Memory))
	fl.StringSliceVar(&g.Uplinks, "uplinks", nil, says("schemes that updates may be sent in (default %s)", strings.Join(d.Uplinks, ",")))
	fl.Float64Var(&g.OwnNoise, "own-noise", 0, says("least noise that this device itself adds, over the clip norm (default %v; none with --trust-local)", d.OwnNoise))
	fl.Float64Var(&g.ExampleNoise, "example-noise", 0, says("least noise over what one example can move: own noise times privacy.groups (default %v)", d.ExampleNoise))
	fl.Float64Var(&g.ExampleBits, "example-bits", 0, says("most bits about any one example that all jobs together can get if everyone else colludes, 0: no limit (default %v; no limit with --trust-local)", d.ExampleBits))
	fl.Float64Var(&g.Bits, "bits", 0, says("most bits about all of the data that all jobs together can get then, 0: no limit (default %.0f; no limit with --trust-local)", d.Bits))
	fl.IntVar(&g.Examples, "examples", 0, says("least distinct examples that an update averages (default %d; %d with --trust-local)", d.Examples, here.Examples))
	fl.StringSliceVar(&g.Tensors, "tensors", nil, says("what may be trained: %v, names of tensors, or any (default %s; any with --trust-local)", model.Classes(), strings.Join(d.Tensors, ",")))
	fl.Float64Var(&g.Leak, "leak", 0, says("greatest share of an update's tokens that trying the job before joining it may find, 0..1 (default %v; with --trust-local it is tried if this is given)", d.Leak))
	fl.StringSliceVar(&g.Bases, "bases", nil, "bases that may be trained over: known (see 'starling base list'), any, or SHA-256 of them (default known; any with --trust-local)")
	fl.IntVar(&g.Rounds, "rounds", 0, says("most rounds that a job may announce (default %d)", d.Rounds))
	fl.StringSliceVar(&g.Programs, "programs", nil, "SHA-256 of programs that may run without being made again here")
	fl.StringSliceVar(&g.Peers, "peers", nil, "identities of the devices that a shard may hold, or @FILE with one a line (see 'starling identity'); needs a job with identified rosters")
	fl.DurationVar(&g.PeerAge, "peer-age", 0, "how long ago a shard's other devices must have been enrolled: younger ones are counted as the coordinator's (default: any)")
	fl.IntVar(&g.Groups, "groups", 0, "least groups that a round's devices must be dealt into by their own keys: a coordinator that wants a shard to itself needs as many times the devices (default: any, also a shard that it chooses)")
	fl.StringVar(&g.Log, "log", "", "key of a witness, NAME+HASH+KEY, which must have signed each head of the job's log of enrolled keys")
	fl.BoolVar(&g.Silent, "silent", false, "send at moments that do not depend on the data, and zeros where nothing has come of it by then (default true; false with --trust-local)")
	fl.Float64Var(&g.Epsilon, "epsilon", 0, "most that all jobs together may cost the data, as seen from here (default: no limit)")
	fl.IntVar(&g.RoundsADay, "rounds-a-day", 0, says("most rounds begun within 24 hours (default %d)", d.RoundsADay))
}

// policy is what was given.
func (p *policyFlags) policy() participation.Policy {
	return participation.Policy{File: p.file, Set: p.set, TrustLocal: p.local}
}

// set puts the limits that were given into a policy.
func (p *policyFlags) set(policy *edge.Policy) error {
	for name, set := range map[string]func(){
		"shard":         func() { policy.Shard = p.given.Shard },
		"corrupt":       func() { policy.Corrupt = p.given.Corrupt },
		"breach-bits":   func() { policy.BreachBits = p.given.BreachBits },
		"semi-honest":   func() { policy.SemiHonest = p.given.SemiHonest },
		"unlogged":      func() { policy.Unlogged = p.given.Unlogged },
		"clip-norm":     func() { policy.ClipNorm = p.given.ClipNorm },
		"start":         func() { policy.Start = p.given.Start },
		"rank":          func() { policy.Rank = p.given.Rank },
		"values":        func() { policy.Values = p.given.Values },
		"steps":         func() { policy.Steps = p.given.Steps },
		"batch":         func() { policy.Batch = p.given.Batch },
		"work":          func() { policy.Work = p.given.Work },
		"memory":        func() { policy.Memory = p.given.Memory },
		"uplinks":       func() { policy.Uplinks = p.given.Uplinks },
		"own-noise":     func() { policy.OwnNoise = p.given.OwnNoise },
		"example-noise": func() { policy.ExampleNoise = p.given.ExampleNoise },
		"example-bits":  func() { policy.ExampleBits = p.given.ExampleBits },
		"bits":          func() { policy.Bits = p.given.Bits },
		"examples":      func() { policy.Examples = p.given.Examples },
		"tensors":       func() { policy.Tensors = p.given.Tensors },
		"leak":          func() { policy.Leak = p.given.Leak },
		"bases":         func() { policy.Bases = p.given.Bases },
		"rounds":        func() { policy.Rounds = p.given.Rounds },
		"programs":      func() { policy.Programs = p.given.Programs },
		"peers":         func() { policy.Peers = p.given.Peers },
		"peer-age":      func() { policy.PeerAge = p.given.PeerAge },
		"groups":        func() { policy.Groups = p.given.Groups },
		"log":           func() { policy.Log = p.given.Log },
		"silent":        func() { policy.Silent = p.given.Silent },
		"epsilon":       func() { policy.Epsilon = p.given.Epsilon },
		"rounds-a-day":  func() { policy.RoundsADay = p.given.RoundsADay },
	} {
		if p.flags.Changed(name) {
			set()
		}
	}
	if p.flags.Changed("peers") && len(policy.Peers) == 0 {
		return usage.Errorf("--peers is empty; leave it out to accept any peer")
	}
	return nil
}
