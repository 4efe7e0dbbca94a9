package job

// Local is the set of defaults of local training that were tuned together on the
// default base, so that the loss falls at rank 1 and at rank_max alike.
type Local struct {
	Optimizer    string
	Alpha        float64 // of LoRA: the scale at rank b is Alpha/b
	LearningRate float64
	ClipNorm     float64 // L2 bound of one device's update
}

// DefaultLocal returns the defaults for a local optimizer: adamw, momentum or sgd.
func DefaultLocal(optimizer string) Local {
	if optimizer == "adamw" {
		return Local{optimizer, 4, 0.03, 2}
	}
	return Local{optimizer, 1, 0.5, 4}
}
