package secagg

import (
	"crypto/rand"
	"fmt"
)

// A claim is a signature of a device's message that is still to be checked, and what
// it covers.
type claim struct {
	signed
	what string
}

func (j *Examined) claim(what string, key *[32]byte, statement []byte, sign *[sigSize]byte) {
	j.claims = append(j.claims, claim{signed{key, statement, sign}, what})
}

// Unverified reports whether signatures or commitments of the message are still to be checked.
// Admit checks them if VerifyBatch has not.
func (j *Examined) Unverified() bool { return len(j.claims) > 0 || len(j.points) > 0 }

// VerifyBatch checks the signatures and commitments of many examined messages at once, of any
// devices, shards and turns, in about a third of the time that Admit needs to check them one by
// one. The verdict is the same either way: a device that sends a bad signature is the only one that
// Admit refuses, and costs its batch no more than the time that batching would have saved.
func VerifyBatch(all []*Examined) {
	claims, bytes := 0, 0
	for _, j := range all {
		claims, bytes = claims+len(j.claims), bytes+len(j.points)
	}
	signs, points := make([]signed, 0, claims), make([]byte, 0, bytes)
	for _, j := range all {
		for _, c := range j.claims {
			signs = append(signs, c.signed)
		}
		points = append(points, j.points...)
	}
	// Without randomness they are checked one by one.
	if sound, err := verifyBatch(rand.Reader, signs); err == nil && sound {
		for _, j := range all {
			j.claims = nil
		}
	}
	if arePoints(points) {
		for _, j := range all {
			j.points = nil
		}
	}
	for _, j := range all {
		settled(j)
	}
}

// settled checks a message's signatures and commitments one by one: VerifyBatch's plain
// twin.
func settled(j *Examined) *Examined {
	if len(j.points) > 0 {
		if _, err := newVerifier(j.points); err != nil {
			j.verdict = err
		}
		j.points = nil
	}
	for _, c := range j.claims {
		if !verify(c.key[:], c.statement, c.sign[:]) {
			j.verdict = fmt.Errorf("%w: %s", ErrSignature, c.what)
			break
		}
	}
	j.claims = nil
	return j
}
