// Package vrf implements a verifiable random function: ECVRF-EDWARDS25519-SHA512-TAI of RFC 9381.
// Anyone who holds an Ed25519 key can compute one number for each input. Nobody else can predict
// it. Anybody with the public key, the input and the proof can check it, and exactly one number
// verifies.
//
//	proof, err := vrf.Prove(key, input)
//	...
//	output, err := vrf.Verify(&public, input, &proof)
//
// Inputs are public: the time that Prove takes to find a point on the curve depends on
// input and public key. It does not depend on the secret.
//
// A key that also signs (crypto/ed25519) may be used: both derive their nonces from the same
// half of it, Prove from a point of 32 bytes, a signature from its message. No message that
// such a key signs may therefore be 32 bytes long; all of Starling's begin with a label and
// are longer.
package vrf
