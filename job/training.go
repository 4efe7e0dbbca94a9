package job

import (
	"math"
	"strconv"

	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
)

// Arithmetics of training programs, as package training has them.
const (
	Exact = training.Exact
	Fused = training.Fused
)

// Fused reports whether the job's programs use fused multiply-add.
func (j Job) Fused() bool { return j.Training.Arithmetic == training.Fused }

// Local holds the defaults of local training that follow from the base and belong together.
type Local struct {
	Optimizer        string
	Alpha            float64 // of LoRA: the scale at rank b is Alpha/b
	LearningRate     float64
	HeadLearningRate float64
}

// What the rule below was tuned to: the default base, 64 wide with 2 layers.
const (
	mostRate  = 0.03
	rateScale = mostRate * 64 * 2
	headScale = mostRate * 8 // 8: the root of 64
)

// DefaultLocal returns the defaults for a local optimizer, one of training.Optimizers,
// over a base: with them the loss falls at rank 1 and at rankMax alike.
//
// AdamW moves every value by about the learning rate, whatever its gradient. The
// values of A that a step moves act together on the h columns of their input, and
// the layers add up: the rate falls with h and with the number of layers, of which each
// of a decoder counts as two, having two attentions. The head
// has one layer, whose inputs are of either sign: its rate falls with the root of
// h. A lower rate for B, which width asks nothing of, is made up for by alpha.
//
// The others follow the gradient, which has a scale of its own; theirs were tuned on
// the default base, for SGD and momentum, and stay.
func DefaultLocal(optimizer string, c model.Config, m model.Method) Local {
	if optimizer != training.AdamW {
		return Local{optimizer, 1, 0.5, 0.5}
	}
	h := float64(c.HiddenSize)
	_, attentions := c.Depth()
	rate := math.Min(mostRate, rateScale/(h*float64(attentions)))
	rate /= m.RateDivisor()
	return Local{
		Optimizer:        optimizer,
		Alpha:            float64(m.RMax) * math.Min(2, math.Max(0.5, h/128)),
		LearningRate:     digits(rate),
		HeadLearningRate: digits(math.Min(mostRate, headScale/math.Sqrt(h))),
	}
}

// DefaultClipNorm is the L2 bound of the update that the given number of steps makes at these
// learning rates, at the largest rank, or of the head alone if rank is 0. It is a quarter of the
// norm that the rates allow, which was best on the default base although it clips nearly every
// update. It is the same at every rank, because the ranks share one adapter.
func DefaultClipNorm(optimizer string, c model.Config, m model.Method, rank, classes, steps int, rate, headRate float64) float64 {
	l, err := model.NewLayout(c, m, classes)
	if optimizer != training.AdamW || err != nil || l.CheckRank(rank) != nil {
		return 4
	}
	head := float64(l.HeadSize())
	rest := float64(l.Size(rank)) - head
	return digits(float64(steps) / 4 * math.Sqrt(rest*rate*rate+head*headRate*headRate))
}

// digits rounds to two significant digits, so that a job's constants can be read.
func digits(x float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
	if err != nil {
		return x
	}
	return v
}

// ForBase fills in the fields whose default follows from the base's width and depth and from the
// rank (DefaultLocal): adapter.alpha, training.learning_rate and head_learning_rate,
// privacy.clip_norm. Fields that the job sets keep their value.
func (j Job) ForBase(c model.Config) Job {
	if j.Task == "" {
		j.Task = c.DefaultTask().String()
	}
	m := j.Method()
	d := DefaultLocal(j.Training.Optimizer, c, m)
	if m.Alpha == 0 {
		m.Alpha = d.Alpha
		j.Adapter.Alpha = d.Alpha
	}
	tr := &j.Training
	switch {
	case tr.LearningRate == 0:
		tr.LearningRate = d.LearningRate
		if tr.HeadLearningRate == 0 {
			tr.HeadLearningRate = d.HeadLearningRate
		}
	case tr.HeadLearningRate == 0:
		tr.HeadLearningRate = tr.LearningRate
	}
	if j.Privacy.ClipNorm == 0 {
		ranks := j.Ranks()
		j.Privacy.ClipNorm = DefaultClipNorm(tr.Optimizer, c, m, ranks[len(ranks)-1], len(j.Labels), tr.Steps,
			tr.LearningRate, tr.HeadLearningRate)
		if j.Privacy.None { // no noise has to be bounded, and AdamW makes no longer update
			j.Privacy.ClipNorm *= 4
		}
	}
	return j
}
