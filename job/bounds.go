package job

// Bounds limit what a round begins with: how far each tensor of the adapter may be from a fresh
// one's, in L2 norm. After each round a tensor beyond its bound is scaled back to it. Devices check
// what they are sent before they train on it, and refuse bounds above their owner's (start in their
// policy). 0 is the published bound, which devices accept by default.
type Bounds struct {
	// A is of each row of a LoRA factor A. 0, the default, is 12.
	A float64 `yaml:"a"`
	// B is of a LoRA factor B, times the scale at rank_max where that is above 1. 0, the default, is 40.
	B float64 `yaml:"b"`
	// Head is of each row of the head's maps. 0, the default, is 250.
	Head float64 `yaml:"head"`
	// Bias is of each value of the head's vectors. 0, the default, is 75.
	Bias float64 `yaml:"bias"`
	// Whole is of a tensor of the base that is trained whole, as a difference. 0, the default, is 60.
	Whole float64 `yaml:"whole"`
	// Modules is of each row of a bottleneck's maps, and of its vectors. 0, the default, is 30.
	Modules float64 `yaml:"modules"`
}
