// Package accounting computes how private the releases of package dp are together, and what noise,
// rounds or sampling rate a target needs.
//
// [Epsilon] composes the events of a ledger into a guarantee; [VisibleEpsilon], [SimulatedEpsilon] and
// [UntrustedEpsilon] do so for other adversaries. [CalibrateNoise] and its siblings solve for one
// parameter, and what they return has been verified. A [Budget] refuses the round that would pass it,
// and a [Search] is charged for choosing the best of a random number of runs.
//
// Accountant dp.Tight composes privacy loss distributions on a grid, rounded both ways, so that the
// true epsilon is between its bounds (Koskela, Jälkö, Honkela 2020; Gopi, Lee, Wutschitz 2021; Zhu,
// Dong, Wang 2022); it is capped by dp.RDP. docs/privacy/proofs.md, section 6, has the proof.
package accounting
