// Package quant turns vectors of float32 into few bits and back.
//
// It serves two different needs, and keeps them apart:
//
//   - Masked vectors (device to coordinator). What a masked coordinate costs
//     is the logarithm of the range of the SUM over a shard, and codes with a
//     scale of their own cannot be summed. A [Lattice] is therefore one integer
//     grid that all devices of a round share: a random rotation spreads the
//     vector, stochastic rounding puts it on the symbols of a [Scheme], and the
//     sum of the symbols decodes to the mean. The rotation is the randomised
//     Hadamard transform of Suresh et al. (2017), "Distributed Mean Estimation
//     with Limited Communication", in two passes of blocks; the integer norm
//     bound with conditional redraw follows Kairouz, Liu, Steinke (2021), "The
//     Distributed Discrete Gaussian Mechanism".
//   - Vectors sent in the clear (coordinator to device, base weights,
//     trusted-aggregator mode). A [Format] packs blocks of 64 values, among
//     them the 4-bit NormalFloat of Dettmers et al. (2023), "QLoRA", with its
//     double quantization; a byte [Codec] may follow. [PackUpdate] and
//     [PackPatch] send to a device that holds an older version what is new.
//
// Threat model. The rotation seed is public: the rotation hides nothing. The
// randomness of the rounding is secret: whoever knew it could undo the
// rounding, and a peer who could predict it could steer it. It is injected as
// an io.Reader and stretched by AES-128-CTR; use crypto/rand.Reader. The norm
// bound [Lattice.B2] is what differential privacy is calibrated on, hence it is
// checked on the integers that leave the device, after all floating point.
// Decoders treat their input as hostile: lengths are bounded before anything
// is allocated.
//
// docs/BANDWIDTH.md lists the constants that two sides must agree on, and what
// each scheme was measured to cost.
package quant
