package trainer

// Names of a step's tensors besides its task's columns; what it trains goes by the layout's names,
// and what is frozen by the base's. A compiled program must have them so.
const (
	InputRate = "learning_rate"    // float32 []
	InputStep = "step"             // float32 []; 1 in a round's first step
	InputLast = "last_micro_batch" // float32 [], where a batch comes in pieces: 1 in the last, which updates, else 0

	// What convolutions make of a recording is the same in every step, and most of its work:
	// a step with StateFeatures, float32 [B, frames, width], makes it only where InputKept,
	// float32 [], is 0; at 1 the state holds the batch's already.
	InputKept     = "kept"
	StateFeatures = "features"

	OutputLoss  = "loss"  // float32 []; the weighted mean before the update
	OutputRight = "right" // float32 []; the share of labels that was right then, of a job that holds examples out
)
