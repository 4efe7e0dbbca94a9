// Package audit holds a job's rounds against what its ledger says, measures how much they reveal
// about its devices, and compares that with the epsilon that the job promises. [Run] audits a job;
// [Documents] bounds the epsilon of a training run whose members were chosen by coins.
//
//	r, err := audit.Run(ctx, cfg)
//
// First come checks ([Check]) of the mechanism: the audit knows every exact sum, and so the noise.
//
// Then it is the one-run audit of Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1)
// training run". Some members of the population are canaries: each is in or out by a secret coin,
// the job runs once, and from what becomes public alone it is guessed which were in. For an
// (epsilon, delta) private job the number of right guesses is bounded (their theorem 5.2, the
// p-value of their appendix D); more right guesses are a lower bound of epsilon, which errs with a
// stated probability. An audit can find flaws and cannot prove their absence: a bound below the
// ledger's epsilon is what a sound job shows, and also a flawed job whose flaw these canaries do
// not reach.
//
// The job itself runs: core.Core draws and releases, round.Machine decides who is waited for
// and what is released, secagg's cut and thresholds are the real ones, and every canary's vector
// goes through the lattice of a device. Masks cancel out of a sum, and are left out. Each canary's
// update has the whole clip norm along a coordinate of its own, which the round's rotation spreads
// over all symbols. The other devices are the adversary's, who knows them.
//
// Threat model: the adversary sees what anybody is shown (released models, whether a round was
// released or charged, clip norms, numbers of shards) and knows every other device, its coins and
// its comings and goings, but not the canaries' coins.
package audit
