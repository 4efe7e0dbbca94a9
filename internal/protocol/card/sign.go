package card

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// signed is the file that is served and kept. The signature is over "starling/1 card", a line's end, and the card
// without white space between its parts, so that a file may be laid out anew.
type signed struct {
	Card      json.RawMessage `json:"card"`
	Key       []byte          `json:"key"` // which of the job's keys signed; devices take it from the announcement
	Signature []byte          `json:"signature"`
}

const context = "starling/1 card\n"

func text(card []byte) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(context)
	if err := json.Compact(&b, card); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCard, err)
	}
	return b.Bytes(), nil
}

// Key is the announced key that a job's card is signed with: that of its log of enrolled keys, or of a job without one
// that of its rosters.
func Key(j *wire.Job) [32]byte {
	if j.LogKey != [32]byte{} {
		return j.LogKey
	}
	return j.RosterKey
}

// Sign makes the file of a card.
func Sign(c Card, key ed25519.PrivateKey) ([]byte, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("card: %w", err)
	}
	over, err := text(b)
	if err != nil {
		return nil, err
	}
	out, err := json.Marshal(signed{b, key.Public().(ed25519.PublicKey), ed25519.Sign(key, over)})
	if err == nil && len(out) > Most {
		err = fmt.Errorf("it has %d bytes, limit %d: the job's texts are too long", len(out), Most)
	}
	if err != nil {
		return nil, fmt.Errorf("card: %w", err)
	}
	return append(out, '\n'), nil
}

// Open reads a file that the key must have signed.
func Open(file []byte, key [32]byte) (c Card, err error) {
	if len(file) > Most {
		return c, fmt.Errorf("%w: it has %d bytes, limit %d", ErrCard, len(file), Most)
	}
	var s signed
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return c, fmt.Errorf("%w: %w", ErrCard, err)
	}
	if _, err := dec.Token(); err != io.EOF { //nolint:errorlint // it is never wrapped
		return c, fmt.Errorf("%w: something follows it", ErrCard)
	}
	over, err := text(s.Card)
	if err != nil {
		return c, err
	}
	if key == [32]byte{} || len(s.Signature) != ed25519.SignatureSize || !ed25519.Verify(key[:], over, s.Signature) {
		return c, fmt.Errorf("%w: the key of the job's announcement, %x, has not signed it", ErrCard, key)
	}
	return Parse(s.Card)
}
