// Package training defines how one device trains in one round: [Spec] is the block training of the
// job file. The job, its recipe, the compiler's step, a simulation's plan and a trainer's task all
// carry a Spec, so that a new key is one field here and one place that acts on it. [Announced] is
// the part that a device is told in the announced job, because it is not compiled into its program.
//
//	spec := j.Training // a training.Spec
//	err := spec.Validate()
package training

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Local optimizers.
const (
	SGD      = "sgd"
	Momentum = "momentum" // heavy ball, 0.9
	AdamW    = "adamw"    // beta 0.9 and 0.999, eps 1e-8, bias-corrected
	Shampoo  = "shampoo"  // FedShampoo's: Kronecker factors' inverse fourth roots, values clipped to 0.2
)

// Optimizers lists the local optimizers.
var Optimizers = []string{SGD, Momentum, AdamW, Shampoo}

// What Spec.StatisticsEvery and Spec.RootsEvery are where they are 0.
const (
	StatisticsEvery = 10
	RootsEvery      = 100
)

// Arithmetics of training programs: see Spec.
const (
	Exact = "exact"
	Fused = "fused"
)

// Spec describes the local training of one device in one round.
type Spec struct {
	// Steps of Batch examples each. Defaults 4 and 8.
	Steps int `yaml:"steps"`
	Batch int `yaml:"batch"`
	// MicroBatch is how many examples of a batch a device computes at once, a divisor of
	// Batch: it takes less memory, and the pieces' gradients are added up in the
	// examples' order, on every device alike. Default Batch, with base_format nf4 half of it.
	MicroBatch int `yaml:"micro_batch" json:",omitempty"`
	// Epochs is how many passes a device makes over its own data in a round, in batches
	// of Batch, Steps being the most steps then. 0: Steps, whatever it holds.
	Epochs int `yaml:"epochs" json:",omitempty"`
	// WeightCap weighs updates by their devices' (or providers') examples n: each counts
	// min(n, WeightCap)/WeightCap, once it is clipped. 0: all count alike. MeanWeight, in
	// (0, 1], is what these weights come to in the mean over all of them: the mean update is
	// the sum over the expected number times it (McMahan et al. 2018). It is public: state it,
	// do not ask the devices.
	WeightCap  int     `yaml:"weight_cap" json:",omitempty"`
	MeanWeight float64 `yaml:"mean_weight" json:",omitempty"`
	// Optimizer is "sgd", "momentum", "adamw" or "shampoo". Default adamw.
	Optimizer string `yaml:"optimizer"`
	// StatisticsEvery and RootsEvery are how often, in steps of a round, shampoo adds a gradient to
	// its factors and how often it takes their roots. The second is a multiple of the first. Before
	// the first roots it is SGD with clipped values. Defaults 10 and 100.
	StatisticsEvery int `yaml:"statistics_every" json:",omitempty"`
	RootsEvery      int `yaml:"roots_every" json:",omitempty"`
	// Dual makes each device keep a dual variable between its rounds, as in DP-CLGECL, which is
	// added to its update before that is clipped. Default false.
	Dual bool `yaml:"dual" json:",omitempty"`
	// LearningRate of the local steps, and of the head's values in them. 0 follows
	// from the base: see ForBase; a head's rate of 0 beside a learning rate that is
	// given is the same as that.
	LearningRate     float64 `yaml:"learning_rate"`
	HeadLearningRate float64 `yaml:"head_learning_rate"`
	// EndFactor is the share of both learning rates that the last round trains with: they fall to
	// it linearly from round to round. In [0, 1]; with 0 (the default) and 1 they stay.
	EndFactor float64 `yaml:"end_factor" json:",omitempty"`
	// WeightDecay of AdamW, decoupled, in [0, 1). Default 0.
	WeightDecay float64 `yaml:"weight_decay"`
	// Arithmetic of the training programs' matrix products: "exact" multiplies, rounds,
	// adds, rounds, on every device; "fused" rounds once, up to 1.7 times as fast, on devices
	// whose processor, and browser, has fused multiply-add: others cannot take part.
	// Each gives the same bits on all devices that have it. Default exact, also where empty.
	Arithmetic string `yaml:"arithmetic" json:",omitempty"`
	// CompactBase keeps the base's matrices as 4-bit codes in a device's memory;
	// it needs a base that is stored as NF4. Default false.
	CompactBase bool `yaml:"compact_base"`
	// Memory is the most that a training program may take of a device's memory, the base's weights
	// included, in MiB, 64..2048: activations are kept for the way back as far as they fit, else computed
	// again. A device whose owner gives less refuses the job. 0, the default, is 1024, of which
	// decoders keep at most 256 of activations.
	Memory int `yaml:"memory" json:",omitempty"`
	// HeldOut is the share of a device's own examples (or each provider's), chosen by their
	// content, that it never trains on. In each round it scores the adapter on some of them before
	// it trains, and reports the result inside its masked, noised vector. At most 0.5. Default 0:
	// none.
	HeldOut float64 `yaml:"held_out" json:",omitempty"`
	// Scored is the largest number of batches of held-out examples that it scores in a round, each
	// of which takes as long as a step. 0 is 1 if HeldOut is not 0.
	Scored int `yaml:"scored" json:",omitempty"`
}

// Validate returns an error that names, by its key, the first relation of the fields that does not
// hold. A rate of 0 is accepted: it follows from the base.
func (s Spec) Validate() error {
	between := func(name string, v, lo, hi int) error {
		if v < lo || v > hi {
			return fmt.Errorf("training.%s is %d, must be in %d..%d", name, v, lo, hi)
		}
		return nil
	}
	rate := func(name string, v float64) error {
		if v != 0 && !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("training.%s is %v, must be positive", name, v)
		}
		return nil
	}
	for _, err := range []error{
		between("epochs", s.Epochs, 0, mostEpochs),
		between("weight_cap", s.WeightCap, 0, mostWeighed),
		between("steps", s.Steps, 1, mostSteps),
		between("batch", s.Batch, 1, MaxBatch),
		between("scored", s.Scored, 0, mostScored),
		between("statistics_every", s.StatisticsEvery, 0, mostSteps),
		between("roots_every", s.RootsEvery, 0, mostSteps),
		rate("learning_rate", s.LearningRate),
		rate("head_learning_rate", s.HeadLearningRate),
		s.CheckMemory(),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case (s.WeightCap > 0) != (s.MeanWeight > 0) || !(s.MeanWeight >= 0 && s.MeanWeight <= 1):
		return fmt.Errorf("training.mean_weight is %v and training.weight_cap %d: give both, a mean weight in (0, 1], or neither", s.MeanWeight, s.WeightCap)
	case s.Dual && s.WeightCap > 0:
		return fmt.Errorf("training.dual with training.weight_cap %d: a dual variable needs a mean in which all count alike", s.WeightCap)
	case s.Epochs > s.Steps:
		return fmt.Errorf("training.epochs is %d and training.steps %d, the most steps of a device: a pass takes one at least. "+
			"training.steps of epochs x examples of a device / batch would do, %d for devices of up to training.batch = %d examples",
			s.Epochs, s.Steps, s.Epochs, s.Batch)
	case s.MicroBatch < 0 || s.MicroBatch > s.Batch || s.MicroBatch > 0 && s.Batch%s.MicroBatch != 0:
		return fmt.Errorf("training.micro_batch is %d, must be a divisor of training.batch, %d", s.MicroBatch, s.Batch)
	case !slices.Contains(Optimizers, s.Optimizer):
		return fmt.Errorf("training.optimizer is %q, must be one of %s", s.Optimizer, strings.Join(Optimizers, ", "))
	case s.Optimizer != Shampoo && (s.StatisticsEvery != 0 || s.RootsEvery != 0):
		return fmt.Errorf("training.statistics_every is %d and training.roots_every %d, which only optimizer %s has", s.StatisticsEvery, s.RootsEvery, Shampoo)
	case cmp.Or(s.RootsEvery, RootsEvery)%cmp.Or(s.StatisticsEvery, StatisticsEvery) != 0:
		return fmt.Errorf("training.roots_every is %d, must be a multiple of training.statistics_every, %d",
			cmp.Or(s.RootsEvery, RootsEvery), cmp.Or(s.StatisticsEvery, StatisticsEvery))
	case s.Optimizer == Shampoo && cmp.Or(s.RootsEvery, RootsEvery) > s.Steps:
		return fmt.Errorf("training.roots_every is %d and training.steps %d: no root is taken in a round, and %s is SGD with clipped values",
			cmp.Or(s.RootsEvery, RootsEvery), s.Steps, Shampoo)
	case s.Arithmetic != "" && s.Arithmetic != Exact && s.Arithmetic != Fused:
		return fmt.Errorf("training.arithmetic is %q, must be exact or fused", s.Arithmetic)
	case !(s.EndFactor >= 0 && s.EndFactor <= 1):
		return fmt.Errorf("training.end_factor is %v, must be in [0, 1]", s.EndFactor)
	case !(s.WeightDecay >= 0 && s.WeightDecay < 1):
		return fmt.Errorf("training.weight_decay is %v, must be in [0, 1)", s.WeightDecay)
	case !(s.HeldOut >= 0 && s.HeldOut <= MaxHeldOut):
		return fmt.Errorf("training.held_out is %v, must be in 0..%v", s.HeldOut, MaxHeldOut)
	case s.Scored > 0 && s.HeldOut == 0:
		return fmt.Errorf("training.scored is %d, but training.held_out is 0: there is nothing to score", s.Scored)
	}
	return nil
}

// CheckMemory returns an error where Memory is out of the range that a job may have.
func (s Spec) CheckMemory() error {
	if s.Memory != 0 && (s.Memory < minMemory || s.Memory > MaxMemory) {
		return fmt.Errorf("training.memory is %d, must be in %d..%d (MiB), or 0", s.Memory, minMemory, MaxMemory)
	}
	return nil
}

// Weight is the weight, in (0, 1], of an update made from the given number of examples.
func (s Spec) Weight(examples int) float64 {
	if s.WeightCap == 0 {
		return 1
	}
	return float64(min(max(1, examples), s.WeightCap)) / float64(s.WeightCap)
}

// At is the training of a round before which the given number of a job's rounds were committed.
func (s Spec) At(committed, rounds int) Spec {
	if s.EndFactor == 0 || rounds < 2 {
		return s
	}
	passed := float64(min(committed, rounds-1)) / float64(rounds-1)
	left := 1 - float64((1-s.EndFactor)*passed) // the conversion keeps processors from fusing
	s.LearningRate *= left
	s.HeadLearningRate *= left
	s.EndFactor = 0
	return s
}

// Bounds of what is counted.
const (
	mostSteps  = 1 << 20
	mostEpochs = 1 << 16
	mostScored = 1 << 10

	mostWeighed = 1 << 24 // examples
)

// Bounds of Spec.Memory, MiB, and what it is where it is 0.
const (
	minMemory     = 64
	MaxMemory     = 2048
	DefaultMemory = 1024
)

// MaxBatch is the largest Spec.Batch.
const MaxBatch = 1 << 12

// MaxHeldOut is the largest Spec.HeldOut: at least half of the data is left to be trained on.
const MaxHeldOut = 0.5
