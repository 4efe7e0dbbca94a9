// Package partition divides the examples of one set: [Dirichlet], [ByUser] and [ByGroup] among clients,
// [Split], [SplitWhole] and [HoldOut] into parts to train on and parts to score on. What it does follows
// from its seed.
package partition
