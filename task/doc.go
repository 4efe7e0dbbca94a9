// Package task says what a model learns from: which columns one example has in a
// training step, how an example is written into them, and how what the model says
// is scored. A compiled program, the device that runs it and the graph that it was
// made from agree on a step's inputs by it.
//
// It knows no graph and no socket, and builds for browsers.
package task
