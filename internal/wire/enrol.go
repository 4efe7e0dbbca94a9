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

// EnrolBytes is what a device's identity signs: both nonces, the version they
// agreed on, the identity and the session to resume. A signature is good for
// one connection.
func EnrolBytes(h *Hello, w *Welcome, identity [32]byte, session []byte) []byte {
	b := transcript(enrolLabel, h, w, identity)
	return append(b, session...) // last and alone of variable length
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
	b := make([]byte, 0, len(label)+16+96+MaxSession)
	b = append(b, label...)
	b = binary.LittleEndian.AppendUint32(b, h.MinVersion)
	b = binary.LittleEndian.AppendUint32(b, h.MaxVersion)
	b = binary.LittleEndian.AppendUint32(b, w.Version)
	b = append(b, h.Nonce[:]...)
	b = append(b, w.Challenge[:]...)
	return append(b, identity[:]...)
}

func proof(secret, b []byte) [32]byte {
	m := hmac.New(sha256.New, secret)
	m.Write(b)
	return [32]byte(m.Sum(nil))
}
