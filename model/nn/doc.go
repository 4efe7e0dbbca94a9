// Package nn writes the encoder, its training step and that of pretraining once,
// as GoMLX graphs, and runs them on GoMLX's pure Go backend.
//
//	p, err := nn.NewPredictor(layout, base, 64, backend)
//	...
//	classes, err := p.Predict(ctx, slice, rank, tokens)
//
// The encoder is BERT (Devlin et al. 2019; post-norm, learned positions); the
// adapter is LoRA (Hu et al. 2021) on query and value, used at the rank b of
// the round as in DyLoRA (Valipour et al. 2022) and DP-DyLoRA: A[:b,:],
// B[:,:b], scale s_b. A step is forward, backward and optimizer in one
// graph, in elementary operations that wasm/compiler covers; the Go backend
// here is the reference that the compiled program is tested against.
//
// GoMLX's API is not 1.0: it appears in Build and in this package's internals
// only. There is no randomness here except from seeds that the caller gives;
// the same inputs give the same outputs, bit for bit, on one machine.
package nn
