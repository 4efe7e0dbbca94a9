package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

const (
	enrolLabel       = "starling/1 enrol\x00"
	deviceProofLabel = "starling/1 device proof\x00"
	coordProofLabel  = "starling/1 coordinator proof\x00"
)

// What a signature says of the connection that it was made for.
const (
	// ChannelPlain: the coordinator said that it sees no TLS, on loopback or behind
	// a proxy that ends it.
	ChannelPlain uint8 = 0
	// ChannelTLS: the signature covers the connection's TLS exporter.
	ChannelTLS uint8 = 1
	// ChannelBrowser: the device runs in a browser, which shows no page its TLS. A
	// page's identity is its own: no page of another coordinator can use it.
	ChannelBrowser uint8 = 2
)

// ExporterLabel names the 32 bytes of the TLS exporter (RFC 8446 section 7.5, no
// context) that both ends of a connection, and nobody between them, can compute:
// they follow from the handshake, the server's certificate included.
const ExporterLabel = "EXPORTER-starling-enrol"

// EnrolBytes is what a device's identity signs: both nonces, the version they
// agreed on, the job, the identity, the connection (exporter is of ChannelTLS
// alone) and the session to resume. A signature is good for one connection to
// one coordinator: relayed to another it does not verify.
func EnrolBytes(h *Hello, w *Welcome, identity [32]byte, channel uint8, exporter, session []byte) []byte {
	b := append(transcript(enrolLabel, h, w, identity), channel, byte(len(exporter)))
	b = append(b, exporter...)
	return append(b, session...) // last and alone of unknown length
}

// DeviceProof shows that the device knows the enrolment secret. The secret
// itself never travels.
func DeviceProof(secret []byte, h *Hello, w *Welcome, identity [32]byte) [32]byte {
	return proof(secret, transcript(deviceProofLabel, h, w, identity))
}

// CoordinatorProof shows that the coordinator knows the enrolment secret, and
// that the job whose TaskID is task is the one it means.
func CoordinatorProof(secret []byte, h *Hello, w *Welcome, identity, task [32]byte) [32]byte {
	return proof(secret, append(transcript(coordProofLabel, h, w, identity), task[:]...))
}

// EqualProof compares two proofs in constant time.
func EqualProof(a, b [32]byte) bool { return hmac.Equal(a[:], b[:]) }

func transcript(label string, h *Hello, w *Welcome, identity [32]byte) []byte {
	b := make([]byte, 0, len(label)+16+130+32+MaxSession)
	b = append(b, label...)
	b = binary.LittleEndian.AppendUint32(b, h.MinVersion)
	b = binary.LittleEndian.AppendUint32(b, h.MaxVersion)
	b = binary.LittleEndian.AppendUint32(b, w.Version)
	b = append(b, h.Nonce[:]...)
	b = append(b, w.Challenge[:]...)
	b = append(b, w.Task[:]...)
	return append(b, identity[:]...)
}

func proof(secret, b []byte) [32]byte {
	m := hmac.New(sha256.New, secret)
	m.Write(b)
	return [32]byte(m.Sum(nil))
}
