// Package task defines what a model learns from: the columns that one example has in a training
// step, how an example is written into them, and how the model's output is scored. It is what a
// compiled program, the device that runs it and the graph that it was made from agree on.
//
//	batch, err := task.EncodeAll(t, examples) // a row for each example
//
// [New] returns the [Task] of a layout. [EncodeAll] writes examples into a [Batch] of the task's
// columns. Tasks differ in what they can do beyond that, by further interfaces: a [Labeller] has
// labels, a [Reader] answers questions, a [Writer] writes texts, and so on.
//
// The package has no graph and no socket, and builds for browsers.
package task
