// Package job reads the job file: everything that an operator fixes before the first round.
//
//	j, err := job.Load("job.yaml") // an error names the key and its limit
//	...
//	j = j.Derived() // with the values of keys that were left out
//
// [Load] or [Parse] reads the file and returns a validated [Job] with its defaults filled in. Its
// methods derive what follows from the keys: who may be drawn ([Job.Quorum]), what a round may cost
// ([Job.BudgetRounds]).
// [Job.ForBase] fills in the defaults that depend on the base model.
//
// The package reads YAML and links neither a model's graph nor a network. docs/JOB.md lists the
// keys.
package job

import (
	"time"

	"github.com/starling-fl/starling/job/statement"
	"github.com/starling-fl/starling/job/training"
)

// Job is everything that is fixed before the first round. None of it may
// change afterwards: the store holds its hash and refuses another. Begin with
// Default: the defaults stand beside the fields, and a zero that is not
// called a default is refused, not replaced.
type Job struct {
	// Name is the task's name; it is bound into the plan every device signs.
	Name string `yaml:"name"`
	// Labels are the classes in the order of their indices; at least 2, and none for tasks
	// answer, span, pretrain, causal and transcribe.
	Labels []string `yaml:"labels"`
	// Task is what is learnt: "classify", one label for a text, "multilabel", any number
	// of them, "tag", one for each word of it, "span", where the answer to a question
	// stands, "image", one label for an image, "listen", one label for a recording, "transcribe", what is said in it,
	// "answer", a text, "pretrain", which tokens of a text were masked, or what was hidden of a document, or "causal",
	// what comes next in a text. Empty (default)
	// is image of a vit, answer of a t5, listen of one that reads recordings, else classify.
	Task string `yaml:"task"`
	// Rounds is the number of committed rounds; abandoned ones do not count.
	// Default 20.
	Rounds int `yaml:"rounds"`
	// Base is a model folder in Hugging Face layout; empty is the embedded
	// default base. The command line reads it; the coordinator is given the
	// loaded base.
	Base string `yaml:"base"`
	// BaseFormat is how devices get and hold the base: empty as it is stored, "nf4" with
	// its matrices as 4-bit codes, an eighth of float32's size. Everything then trains
	// with, scores and releases what the codes stand for: see OpenBase.
	BaseFormat string `yaml:"base_format" json:",omitempty"`
	// BaseRevision is the commit on the hub, 40 hexadecimal digits, that a base in the local
	// Hugging Face cache must be of; empty is the cache's main. The command line reads it.
	BaseRevision string `yaml:"base_revision" json:",omitempty"`
	// BaseSHA256 is what the base must be, in the form that devices get: 64 hexadecimal
	// digits, as 'starling base verify' prints them. Empty is any. Devices hold the base to
	// lists of such hashes.
	BaseSHA256 string `yaml:"base_sha256" json:",omitempty"`
	// ValidationFile is a public labelled file that scores every round and chooses the rank of
	// the release; empty is none, and it may change between two starts. The command line reads
	// it: beside the job file where it is relative, and for one job of a server of several in
	// public/ of the server's folder, and nowhere else.
	ValidationFile string `yaml:"validation_file" json:"-"`

	About     About     `yaml:"about" json:",omitzero"`
	Adapter   Adapter   `yaml:"adapter"`
	Training  Training  `yaml:"training"`
	Cohort    Cohort    `yaml:"cohort"`
	Shard     Shard     `yaml:"shard"`
	Privacy   Privacy   `yaml:"privacy"`
	Providers Providers `yaml:"providers"`
	Clipping  Clipping  `yaml:"clipping"`
	Bounds    Bounds    `yaml:"bounds" json:",omitzero"`
	Wire      Wire      `yaml:"wire"`
	Server    Server    `yaml:"server"`
	Deadlines Deadlines `yaml:"deadlines"`
	Enrolment Enrolment `yaml:"enrolment"`
}

// About says who asks for the job and what for: owners of devices read it first.
type About = statement.Statement

// Adapter describes the low-rank adapter that is trained.
type Adapter struct {
	// RankMin..RankMax is the range from which each round's rank is drawn,
	// independently of any data. Defaults 1 and 8.
	RankMin int `yaml:"rank_min"`
	RankMax int `yaml:"rank_max"`
	// RankDistribution is the law of each round's rank: "uniform" (default), "geometric", which from rank_min on
	// stops at each rank with probability 0.15 and begins again behind rank_max, or "weights". The draw is public.
	RankDistribution string `yaml:"rank_distribution" json:",omitempty"`
	// RankWeights are the weights of rank_min to rank_max, whole numbers, for rank_distribution weights: a rank of
	// weight 0 is never drawn.
	RankWeights []int `yaml:"rank_weights" json:",omitempty"`
	// Alpha determines the adapter's scale at a rank. 0 follows from the base: see ForBase.
	Alpha float64 `yaml:"alpha"`
	// Scale of the adapter at rank b: "rank" (default) is alpha/b, "constant"
	// alpha/rank_max at every rank.
	Scale string `yaml:"scale" json:",omitempty"`
	// Start is the folder of a PEFT adapter or of a checkpoint that the first round
	// begins with: it computes at rank_max what it computed where it was made. It must
	// be over the same base. Empty is a fresh adapter. The command line reads it.
	Start string `yaml:"start"`
	// Sequence is the tokens per example. Default 64, at most the base's positions.
	Sequence int `yaml:"sequence"`
	// Answer is the most tokens of an answer, for task answer with its end. Default 32, of
	// task span 64, of task pretrain over a t5 128.
	Answer int `yaml:"answer"`
	// Objectives of task pretrain over a t5: TM, LM and TLM, each drawn as often as it is named.
	// Default all of them once.
	Objectives []string `yaml:"objectives" json:",omitempty"`
	// Method says what is trained beside the head: "lora" (default), "bitfit" (every
	// bias), "full" (every tensor), "head" (nothing), "adapter" or "compacter"
	// (bottlenecks behind attention and feed-forward).
	Method string `yaml:"method"`
	// Targets are the linear maps that LoRA changes, by the ends of their names; all-linear
	// alone is all of them.
	// Default query and value.
	Targets []string `yaml:"targets"`
	// Also names tensors of the base, or modules, that are trained whole beside it.
	Also []string `yaml:"also"`
	// Bottleneck is the columns between the two maps of adapter and compacter. 0 is a
	// 16th of the base's width for adapter, a 32nd for compacter.
	Bottleneck int `yaml:"bottleneck" json:",omitempty"`
	// Blocks is compacter's n. 0 is 8.
	Blocks int `yaml:"blocks" json:",omitempty"`
	// HeadOnly trains the classification head and leaves the adapter at its
	// initial zero: the comparison run, not a product.
	HeadOnly bool `yaml:"head_only"`
}

// Training describes the local training of one device in one round.
type Training = training.Spec

// Cohort describes who takes part.
type Cohort struct {
	// Population is the number of identities that the job is for, all of which must be enrolled
	// before the first round unless Start says otherwise; with SamplingRate it fixes the denominator
	// ExpectedCohort = SamplingRate*Population for the whole job. Default 24.
	Population int `yaml:"population"`
	// SamplingRate is the probability of each identity's coin, over-selection
	// included; in (0, 1]. Default 1.
	SamplingRate float64 `yaml:"sampling_rate"`
	// Sampling says how a cohort is chosen: "poisson" (default), by a coin of sampling_rate
	// for each identity, or "fixed", Size of those who are there, without replacement. A
	// fixed size is for few and known clients: it does not amplify, and is accounted as if
	// everybody took part in every round.
	Sampling string `yaml:"sampling" json:",omitempty"`
	// Size of every cohort with sampling fixed, in 2..population, or 1 to simulate without privacy. 0 with sampling poisson.
	Size int `yaml:"size" json:",omitempty"`
	// Floor is the least cohort drawn that is asked for updates: a smaller
	// one commits noise only, and is charged. 0 is max(2, nbar/2) rounded down.
	Floor int `yaml:"floor"`
	// Dropout is the largest share of a cohort's honest devices, in [0, 0.9], that leaves
	// between the draw and the round's end and for which what is promised holds, where
	// coins choose the cohort. More than that pauses the job. 0 is 0.1.
	Dropout float64 `yaml:"dropout" json:",omitempty"`
	// Quorum is the number of devices that must be there before coins choose a cohort.
	// 0 is the least that costs no noise, or little, where it costs some even so, four
	// fifths of the population.
	Quorum int `yaml:"quorum" json:",omitempty"`
	// Start is how many devices must have enrolled before the first round: a number, or as a
	// share of the population in (0, 1]. Devices that enrol later take part from the next
	// round on. What is promised is promised for the population in either case. 0 is all of it.
	Start float64 `yaml:"start" json:",omitempty"`
	// StartWithin is how long after the job is first served rounds begin with fewer: with all that
	// have enrolled, if a round is possible with them. Default 0: never. An operator may
	// have them begin at any time (starling job begin).
	StartWithin time.Duration `yaml:"start_within" json:",omitempty"`
	// MaxEnrolled bounds the enrolled identities. Default 100000.
	MaxEnrolled int `yaml:"max_enrolled"`
	// MaxConnected bounds the open connections: beyond it a device is told to
	// hang up and come back. Default 10000.
	MaxConnected int `yaml:"max_connected"`
	// MaxAbandoned is the number of rounds abandoned in a row after which the
	// job stops with an error. Default 10.
	MaxAbandoned int `yaml:"max_abandoned"`
}

// Shard describes secure aggregation.
type Shard struct {
	// Size is the largest shard; the ring's width follows from it. 0 is 64, or where coins
	// choose the cohort the least of 64, 96, 128, 170, 256, 341 and 512 with which three
	// quarters of the population are a quorum, else the one that costs the least noise.
	Size int `yaml:"size"`
	// Floor is the smallest shard a device accepts. 0 is 8, or more where the
	// threshold needs more, or the cohort's floor if that is less than 8.
	Floor int `yaml:"floor"`
	// Trim leaves out, in each coordinate, the Trim largest and the Trim smallest of
	// the shards' sums: who poisons its update in up to Trim shards moves no
	// coordinate beyond the other shards'. It costs no privacy, and 2*Trim shards'
	// share of the signal. It needs a cohort that is not sampled, of which
	// cohort.floor devices make 2*Trim+1 shards. Default 0: the sum of all.
	Trim int `yaml:"trim" json:",omitempty"`
	// Groups is how many the devices of a round without coins are dealt into, each by its own
	// key, so that nobody chooses who is in a shard. Their sizes spread as chance has it: a
	// group below Floor is left out whole, of one above Size those beyond it. Where coins
	// choose the cohort it follows from who is there. It needs a log of enrolled keys. Default
	// 0: the coordinator cuts equal shards.
	Groups int `yaml:"groups" json:",omitempty"`
	// Corrupt is the fraction of corrupted devices the threshold is chosen
	// against. Default 0.05.
	Corrupt float64 `yaml:"corrupt"`
	// BreachBits asks that no shard of a round be broken but with probability
	// 2^-BreachBits, over all shards of twice the expected cohort; 0 is a bare
	// majority. Default 40.
	BreachBits int `yaml:"breach_bits"`
	// SemiHonest chooses the threshold against a coordinator that follows the
	// protocol; more dropouts are tolerated. Default false.
	SemiHonest bool `yaml:"semi_honest"`
	// Hybrid seals shares with ML-KEM-768 + X25519. Default false.
	Hybrid bool `yaml:"hybrid"`
	// Identified puts identities into rosters instead of per-round keys.
	// Default false.
	Identified bool `yaml:"identified"`
	// Anonymous leaves out of rosters who is in them. Then nobody can hold a shard against
	// the log of enrolled keys, and an invented device looks like any other; else a device's
	// shard sees its identity and the second of its enrolment. Default false.
	Anonymous bool `yaml:"anonymous" json:",omitempty"`
}

// Privacy is the target and the means.
type Privacy struct {
	// None gives every claim of privacy up: no noise is added, nothing is promised, and
	// devices refuse the job unless their owner accepts it. Default false.
	None bool `yaml:"none" json:",omitempty"`
	// Epsilon is the budget; the run stops before a round that would pass it.
	// Default 2. It applies to the simulated guarantee when SimulatedPopulation
	// is set, else to the delivered one.
	Epsilon float64 `yaml:"epsilon"`
	// Delta; 0 is min(1e-6, N^-1.1), N being the population the budget applies to.
	Delta float64 `yaml:"delta"`
	// NoiseMultiplier z; 0 calibrates it from Epsilon, Delta, sampling rate and
	// rounds. Given, it must keep all rounds within Epsilon.
	NoiseMultiplier float64 `yaml:"noise_multiplier"`
	// Mechanism is how rounds' noise goes together: "independent" (default), each round's by itself, or
	// "banded", by which most of a round's noise cancels what earlier rounds added. A device then
	// takes part at most once in any Separation rounds, which needs cohort.sampling fixed; and
	// epsilon holds against those who see who takes part.
	Mechanism string `yaml:"mechanism" json:",omitempty"`
	// Separation is the rounds from one that a device is in to its next, for mechanism banded.
	// cohort.size * separation devices must be there. 0 is half of cohort.population /
	// cohort.size, so that half of the devices may be away.
	Separation int `yaml:"separation" json:",omitempty"`
	// Band is the rounds that a round's noise is cancelled in, at most Separation; each is kept. If
	// rank_min is below rank_max the rank is drawn once for so many rounds, and nothing is
	// cancelled beyond them. 0 is Separation, at most 4096.
	Band int `yaml:"band" json:",omitempty"`
	// Noise says whose noise epsilon rests on: "central" (default), the coordinator's;
	// "devices", what the honest devices of a round add themselves, before masking; "silo",
	// what each of them adds, so that every upload is private by itself.
	Noise string `yaml:"noise" json:",omitempty"`
	// Observer says who epsilon holds against: "public", who sees releases and what the
	// coordinator publishes; "coalition", a share shard.corrupt of the devices besides, who tell
	// each other whom they saw in their shards; "participants", who see who takes part in every
	// round. Empty is participants where no coin is to be hidden, public where rosters are
	// anonymous or a population is simulated, else coalition.
	Observer string `yaml:"observer" json:",omitempty"`
	// OwnNoise is the least noise that each device adds itself, a standard deviation over
	// the clip norm: 1/(2 own_noise^2 ln 2) bits a round are the most that it shows if
	// everybody else lies. 0 is what the target needs of cohort.floor devices, a share
	// shard.corrupt of whom add none.
	OwnNoise float64 `yaml:"own_noise" json:",omitempty"`
	// Groups is how many groups each device divides its examples into (each provider's, if
	// providers are protected). Each group is trained by itself, with training.steps of
	// training.batch examples, and clipped to clip_norm/groups. Then no example moves what a
	// device sends by more: own noise of v hides one as groups * v would. At most 256. 0, the
	// default, and 1 are none.
	Groups int `yaml:"groups" json:",omitempty"`
	// ClipNorm is the L2 bound of one device's update, or of each provider's;
	// with adaptive clipping that of the first round. 0 follows from the base: see
	// ForBase.
	ClipNorm float64 `yaml:"clip_norm"`
	// ClipByRank makes the L2 bound of a round at rank b clip_norm * sqrt(d_b/d_max),
	// d_b being the values trained at that rank: a lower rank moves fewer values. Noise
	// falls with the bound, and the noise multiplier stays. Default false.
	ClipByRank bool `yaml:"clip_by_rank" json:",omitempty"`
	// ScoreNoise is what the figures of training.held_out cost: by this share the noise of the
	// update grows, at the same epsilon. In (0, 1]. 0 is 0.03 where there are figures.
	ScoreNoise float64 `yaml:"score_noise" json:",omitempty"`
	// Accountant is "tight" or "rdp". Default tight.
	Accountant string `yaml:"accountant"`
	// SimulatedPopulation N and SimulatedCohort simulate a larger cohort
	// (McMahan et al. 2018): sigma = (nbar/SimulatedCohort)*z*S, with sampling
	// rate SimulatedCohort/N. Both or neither. Everything a simulated run
	// prints is labelled. Default: no simulation.
	SimulatedPopulation int `yaml:"simulated_population"`
	SimulatedCohort     int `yaml:"simulated_cohort"`
}

// Providers makes each provider in a device's data (whose documents it holds)
// the unit of privacy, in place of the device: group-level privacy with virtual
// clients. A device trains one update a provider, clips each by itself and sends
// the sum. The device's own coin, cohort.sampling_rate, is shared by all its
// providers and does not amplify, since the sum of the others would show how it
// fell: only their own coins do, and rounds without the device cost them nothing.
type Providers struct {
	// Max is the largest number of providers that a device may hold; the ring
	// has room for all of them. One that holds more cannot take part. Default 0:
	// the device is the unit.
	Max int `yaml:"max"`
	// Expected number of providers in a device, at least 1: with it and
	// SamplingRate the denominator is fixed. 0 is Max.
	Expected float64 `yaml:"expected"`
	// SamplingRate is the probability of each provider's own coin, flipped inside
	// its device in every round; in (0, 1]. Default 1.
	SamplingRate float64 `yaml:"sampling_rate"`
}

// Clipping adapts the clip norm to the updates (Andrew et al. 2021): each
// unit adds a bit, whether it was within the norm, to its masked and noised
// vector.
type Clipping struct {
	// Adaptive turns it on. Default false.
	Adaptive bool `yaml:"adaptive"`
	// Quantile of the norms that shall be within the clip norm, in (0, 1).
	// Default 0.5.
	Quantile float64 `yaml:"quantile"`
	// Rate of the geometric step. Default 0.2.
	Rate float64 `yaml:"rate"`
	// CountNoise is the standard deviation of the bits' noisy count over the
	// expected number of units. The count spends part of the budget, so the
	// update's own noise multiplier grows from z to
	// (z^-2 - (2*CountNoise*units)^-2)^(-1/2). 0 is 0.05, or in a small cohort
	// the value that leaves the update 97 % of the budget.
	CountNoise float64 `yaml:"count_noise"`
	// Min and Max bound the norm. 0 is privacy.clip_norm/1000 and *1000.
	Min float64 `yaml:"min"`
	Max float64 `yaml:"max"`
}

// Wire says how vectors are written.
type Wire struct {
	// Uplink is a masked scheme: nf4 int4 int5 int3 tern fixed16 fixed32.
	// Default nf4.
	Uplink string `yaml:"uplink"`
	// Downlink is an unmasked scheme: f32 f16 bf16 int8 int4 nf4 nf4dq. Default bf16.
	Downlink string `yaml:"downlink"`
	// DownlinkCodec is a byte codec: none snappy s2 zstd. Default zstd.
	DownlinkCodec string `yaml:"downlink_codec"`
}

// Server is the optimizer that applies a round's mean update.
type Server struct {
	// Optimizer is "fedavg", "fedavgm", "fedadagrad", "fedadam" or "fedyogi". Default
	// fedavgm.
	Optimizer string `yaml:"optimizer"`
	// LearningRate of the server. 0 follows from the optimizer: 1 of fedavg and fedavgm, 1e-3
	// of fedadam and fedyogi, 0.1 of fedadagrad.
	LearningRate float64 `yaml:"learning_rate"`
	// Momentum of fedavgm in [0, 1). Default 0.5.
	Momentum float64 `yaml:"momentum"`
	// Beta1 and Beta2 of fedadam and fedyogi; fedadagrad has no Beta2. Defaults 0.9, 0.99.
	Beta1 float64 `yaml:"beta1"`
	Beta2 float64 `yaml:"beta2"`
	// Epsilon of fedadagrad, fedadam and fedyogi. 0 is 1e-5.
	Epsilon float64 `yaml:"epsilon"`
	// Average is the number of last rounds whose adapters' mean is shown, measured and
	// exported in place of the last adapter, up to rounds; rounds continue from the last as
	// they do without. All of them are released: it costs no privacy. 0 and 1 are the last
	// alone.
	Average int `yaml:"average" json:",omitempty"`
}

// Deadlines bounds each state of a round: none waits longer. Behind Gather each
// follows the fleet, between Min and the value given here.
type Deadlines struct {
	Gather  time.Duration `yaml:"gather"`  // default 30s
	Key     time.Duration `yaml:"key"`     // default 30s
	Share   time.Duration `yaml:"share"`   // default 30s
	Collect time.Duration `yaml:"collect"` // default 5m; includes training
	Confirm time.Duration `yaml:"confirm"` // default 30s
	Unmask  time.Duration `yaml:"unmask"`  // default 30s
	// Min is the least to which a state's deadline shrinks where the fleet answers
	// sooner: a state may last three times what all but the slowest tenth, or the share Slow,
	// needed in the last rounds. From the largest of the deadlines on they all stay. Default 10s.
	Min time.Duration `yaml:"min"`
	// Reconnect is how long a device whose connection broke is waited for
	// before the round goes on without it, as long as others still work or the
	// round needs it; where nobody else works, a tenth of the work so far. Default 5s.
	Reconnect time.Duration `yaml:"reconnect"`
	// Enough is the fraction of the shards, in (0, 1], that must have ended their
	// turns before the round hurries the others: each of their states has Grace
	// left, and who is slower drops out. 0 is 0.9 and 5s.
	Enough float64       `yaml:"enough" json:",omitempty"`
	Grace  time.Duration `yaml:"grace" json:",omitempty"`
	// Slow is the share of devices, in (0, 0.5), that no turn awaits: deadlines follow the
	// others, and devices are not excluded for being slower. What the slow ones hold then counts
	// in no round. At most 0.1 where coins choose the cohort. 0 is 0.1, with the slow excluded.
	Slow float64 `yaml:"slow" json:",omitempty"`
}

// Enrolment says who may enrol.
type Enrolment struct {
	// Secret must be shown by a device at its first join; empty enrols anybody
	// who reaches the socket (the demo on loopback), where serve listens on loopback;
	// elsewhere it draws one of its own. 16 to 64 bytes.
	Secret string `yaml:"secret"`
	// Absent is how long a device may stay away before it leaves the population that
	// cohorts are drawn from; it is back when it comes back. Default 720h.
	Absent time.Duration `yaml:"absent"`
}
