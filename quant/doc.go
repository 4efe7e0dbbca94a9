// Package quant encodes vectors of float32 in few bits, and decodes them.
//
// It has two parts, for two different needs:
//
//   - A [Lattice] encodes what is summed under masks (device to coordinator). Codes
//     with a scale of their own cannot be added up, so all devices of a round share
//     one integer grid: [Lattice.Encode] clips a vector, spreads it by a random
//     rotation and rounds it to the symbols of a [Scheme], and [Lattice.DecodeMean]
//     turns the sum of all symbols back into the mean vector. A masked coordinate
//     costs the logarithm of the range of the sum. The rotation is the randomised
//     Hadamard transform of Suresh et al. (2017), "Distributed Mean Estimation with
//     Limited Communication", in two passes of blocks; the integer norm bound with
//     conditional redraw follows Kairouz, Liu, Steinke (2021), "The Distributed
//     Discrete Gaussian Mechanism".
//   - A [Format] encodes what is sent in the clear (coordinator to device, base
//     weights): blocks of 64 values, among them the 4-bit NormalFloat of Dettmers et
//     al. (2023), "QLoRA", with its double quantization. A byte [Codec] may follow.
//     [Compress] and [Decompress] do both. [PackUpdate] and [PackPatch] send only the
//     difference to a device that holds an older version.
//
// Threat model. The rotation seed is public: the rotation hides nothing. The randomness of the
// rounding is secret: anyone who knew it could undo the rounding, and a peer who could predict it
// could steer it. It is injected as an io.Reader and stretched by AES-128-CTR; use
// crypto/rand.Reader. Differential privacy is calibrated on the norm bound [Lattice.B2], so that
// bound is checked on the integers that leave the device, after all floating point. Decoders treat
// their input as hostile: lengths are bounded before anything is allocated.
//
// docs/BANDWIDTH.md lists the constants that two sides must agree on, and what each scheme was
// measured to cost.
package quant
