// Package secagg implements secure aggregation: devices give a server the sum of their integer
// vectors, and nothing else about any one of them.
//
// Package strength finds a threshold for given corruption and dropout. A device runs a [Client]; the server
// runs a [Keying] while devices advertise keys, which then yields a [Server] for each shard. The
// example of the package runs a whole round.
//
// It is the protocol of Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving
// Machine Learning" (CCS 2017, figure 4 with the signatures of the active-adversary variant), on a
// complete graph inside random shards. Client and Server are pure state machines that exchange
// messages in five turns:
//
//	turn  device sends                       server sends
//	1     Advertise: per-round keys, signed  Roster of the device's shard (U1)
//	2     Shares: a sealed share per peer,   Delivery: the shares meant for it,
//	      commitments to the server          and U2
//	3     Masked: the vector, masked over U2 Survivors: U2 and U3
//	4     Confirmation: signature (R,U2,U3)  Confirmations of at least t devices
//	5     Reveal: one share per peer         -
//
// U1 are the devices of the shard, U2 those that shared, U3 those whose vectors are in the sum, U4
// those that signed; P and R are the hashes of plan and roster. Neither machine does I/O, reads a
// clock or starts a goroutine; randomness is an injected io.Reader. One goroutine owns a machine at
// a time. Every refused call returns an error and leaves the machine as it was.
//
// Primitives: X25519 (RFC 7748), HKDF-SHA256 (RFC 5869), Ed25519 (RFC 8032), AES-128-CTR (SP
// 800-38A) as the mask generator, AES-128-GCM under the pairwise key or HPKE (RFC 9180) with
// ML-KEM-768 + X25519 for sealed shares, Shamir's sharing over the scalars of edwards25519 with
// Feldman's commitments.
//
// # Threat model
//
// Devices that follow the protocol are protected against a server that deviates from it, together
// with up to the number of corrupted shard members that the threshold was chosen for (see package strength):
// it learns the sum over a set of at least t devices of a shard, once, and nothing more. This
// presumes an honest draw of the shards and honest enrolment (with per-round certified keys the
// Authority is trusted not to invent devices; with Identified a device can check its peers itself).
// The sum's integrity is not protected: a device may submit any in-range vector, and one that
// submits garbage ruins its shard's sum. Availability is not protected against the server.
// docs/PROTOCOL.md has the argument, the encodings and the list of what is not protected.
package secagg
