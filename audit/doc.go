// Package audit measures how much of its devices a job gives away, and holds that
// against the epsilon that it is sold with.
//
// It is the one-run audit of Steinke, Nasr and Jagielski 2023, "Privacy auditing with
// one (1) training run". Some members of the population are canaries: each is in or
// out by a secret coin, the job runs once, and from what becomes public alone it is
// guessed which were in. Of an (epsilon, delta) private job at most so many guesses
// are right (their theorem 5.2, the p-value of their appendix D); more of them are a
// lower bound of epsilon, which errs with a stated probability. An audit finds flaws
// and proves none absent: a bound below the ledger's epsilon is what a sound job has,
// and what a flawed one has whose flaw these canaries do not reach.
//
// What runs is the job itself: coordinator.Core draws and releases, round.Machine
// decides who is waited for and what is released, secagg's cut and thresholds are the
// real ones, every canary's vector goes through the lattice that a device's goes
// through. Masks cancel out of a sum, and are left out. The canaries' updates have the
// whole clip norm, each along a coordinate of its own, which the round's rotation
// spreads over all symbols; the other devices are the adversary's, who knows them.
//
// Threat model: whoever sees what anybody is shown (released models, whether a round
// was released or charged, clip norms, numbers of shards) and knows every other
// device, its coins and its comings and goings, but not the canaries' coins.
package audit
