package training

// Announced is the part of a Spec that a device acts on itself and is therefore told in the
// announced job. The rest is compiled into its program. The fields are in message job in this
// order.
type Announced struct {
	Batch     uint32 // examples of a local step
	Optimizer string // local optimizer: see Optimizers
	Epochs    uint32 // passes over a unit's own data in a round, plan.steps being the most steps; 0: plan.steps
	WeightCap uint32 // examples with which a unit's update counts whole, one of fewer by their share; 0: all count whole
}

// Announce returns the part of the Spec that devices are told.
func (s Spec) Announce() Announced {
	return Announced{Batch: uint32(s.Batch), Optimizer: s.Optimizer, Epochs: uint32(s.Epochs), WeightCap: uint32(s.WeightCap)}
}

// Spec is the training of a device in a round whose plan has the given steps and rate.
func (a Announced) Spec(steps uint32, rate float64) Spec {
	return Spec{Steps: int(steps), Batch: int(a.Batch), Epochs: int(a.Epochs), WeightCap: int(a.WeightCap), Optimizer: a.Optimizer, LearningRate: rate}
}

// mostName is the bytes of an optimizer's name.
const mostName = 64

// Bound is the limit of a field that came from a stranger.
type Bound struct {
	Field          string
	Have, Min, Max int
}

// Bounds lists the limits of all fields, for the decoder of message job to check.
func (a Announced) Bounds() []Bound {
	return []Bound{
		{"batch", int(a.Batch), 1, MaxBatch},
		{"epochs", int(a.Epochs), 0, mostEpochs},
		{"weight_cap", int(a.WeightCap), 0, mostWeighed},
		{"optimizer", len(a.Optimizer), 1, mostName},
	}
}
