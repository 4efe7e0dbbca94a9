package edge

import "github.com/starling-fl/starling/model/trainer"

// What a device trains with is package trainer's.
type (
	Trainer = trainer.Trainer
	Task    = trainer.Task
	Batch   = trainer.Batch
)
