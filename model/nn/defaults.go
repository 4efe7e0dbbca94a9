package nn

// Training is the set of a job's defaults that were tuned together on the default base.
type Training struct {
	Optimizer    Optimizer
	Alpha        float64 // of LoRA: the scale at rank b is Alpha/b
	LearningRate float64
	ClipNorm     float64 // L2 bound of one device's update
}

// DefaultTraining returns the defaults for a local optimizer, with which the
// loss falls at rank 1 and at r_max alike.
func DefaultTraining(o Optimizer) Training {
	if o == AdamW {
		return Training{AdamW, 4, 0.03, 2}
	}
	return Training{o, 1, 0.5, 4}
}
