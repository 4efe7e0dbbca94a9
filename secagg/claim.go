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

func (j *Judged) claim(what string, key *[32]byte, statement []byte, sign *[sigSize]byte) {
	j.claims = append(j.claims, claim{signed{key, statement, sign}, what})
}

// Unsettled reports whether signatures or commitments of the message are still to be
// checked. Admit checks them where they are.
func (j *Judged) Unsettled() bool { return len(j.claims) > 0 || len(j.points) > 0 }

// Settle checks the signatures and commitments of messages of any devices, shards and
// turns at once, for about a third of what Admit takes for each by itself. Each is valid
// here exactly if it is there (see signature.go and points.go): a device that sends a
// bad one costs its batch the time that it would have saved, and is the only one that
// Admit refuses.
func Settle(all []*Judged) {
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

// settled checks a message's signatures and commitments one by one: Settle's plain
// twin.
func settled(j *Judged) *Judged {
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
