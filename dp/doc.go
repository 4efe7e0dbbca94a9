// Package dp makes a federated release differentially private. It has clipping, an exact discrete
// Gaussian, Poisson cohorts, a ledger event for every release, and what devices check a job by: the
// Rényi accountant, whose epsilon is an upper bound. Tighter bounds, calibration and budgets are in
// package accounting.
//
// Before a job accounting.CalibrateNoise finds the noise multiplier that a target (epsilon, delta) needs. In
// each round [PoissonDraw] draws who takes part, and [Release] adds the noise to the sum and returns
// the [Event] to be charged. accounting.Epsilon composes all events so far into a [Guarantee]:
//
//	z, err := accounting.CalibrateNoise(2, 1e-6, 0.01, 1000, dp.Tight)
//	...
//	event, err := dp.Release(sum, dp.ReleaseSpec{
//		Round: 1, SamplingRate: 0.01, B2: lattice.B2(), NoiseMultiplier: z, NoiseScale: 1,
//	}, dp.NewSampler(rand.Reader))
//	...
//	g, err := accounting.Epsilon(append(events, event), 1e-6, dp.Tight)
//
// # What is protected from whom
//
// The adversary sees every released model and every public constant of the job. Two worlds are
// adjacent if one device (or one provider in a device, if the events say so: see [GroupSampling])
// is present in one and absent in the other ("add/remove"; an absent one contributes the zero
// vector). The coordinator itself sees exact sums: this package does not protect against it.
// Amplification by sampling holds only against those who do not see who took part.
//
// # Sources
//
//   - Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy"
//     (algorithms 1-3): [Sampler].
//   - Mironov, Talwar, Zhang 2019, "Rényi Differential Privacy of the Sampled Gaussian
//     Mechanism": accountant [RDP]. Conversion: Canonne, Kamath, Steinke 2020,
//     proposition 12.
//   - Andrew, Thakkar, McMahan, Ramaswamy 2021, "Differentially Private Learning with
//     Adaptive Clipping": [AdaptiveClip].
//   - McMahan, Ramage, Talwar, Zhang 2018: simulating a larger cohort's noise.
//
// It keeps no state on disk and starts no goroutine except those of a [Pool]. Randomness is always an
// injected reader; if the reader fails, so does the operation.
package dp
