// Package partition divides the examples of one set: [Dirichlet], [ByUser] and [ByGroup] among clients,
// [Split], [SplitWhole] and [HoldOut] into parts to train on and parts to score on. What it does follows
// from its seed.
//
//	parts, err := partition.Dirichlet(set, 24, 0.1, seed) // indices of each client's examples
package partition
