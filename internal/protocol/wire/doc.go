// Package wire defines the messages between a Starling device and a coordinator:
// their types, their canonical bytes, their sizes and their order.
//
// One WebSocket binary message carries one frame: a kind byte and a CBOR array
// (RFC 8949, core deterministic encoding, section 4.2.1). flow.go lists every
// kind with its direction and its largest size; that table is the whole
// grammar. Large immutable things (base weights, programs, adapter slices) do
// not travel in frames: messages name them by SHA-256 and size, and they are
// fetched from /blob/<sha256> with plain HTTP.
//
// A message is accepted only in its canonical bytes: Decode re-encodes what it
// read and compares, so that decode then encode is the identity and a hash
// over received bytes is a hash over their meaning.
//
// # Threat model
//
// The peer may send anything. Each kind has a size limit that is checked
// before the body is looked at; counts are bounded by the decoder and then by
// each message's own rules; indefinite lengths, tags, duplicate keys, NaN,
// infinities, trailing bytes and kinds sent in the wrong direction are
// refused. The package authenticates the device (Ed25519 over both nonces) and
// both sides' knowledge of the enrolment secret; confidentiality and integrity
// of the transport are TLS's with the certificate pinned by the join token.
// What a frame may carry towards the coordinator about a device's data is
// limited by construction: the only bulk message is made by NewUpdate from a
// value that masks itself.
package wire
