package secagg

import "bytes"

// Delivered tells whether U2 is known, over which Mask masks: whether Deliver has
// succeeded.
func (c *Client) Delivered() bool { return c.delivered }

// Resend returns the encoding of the message sent in a turn, for a reconnect: the
// same bytes. Nil if that turn has not been taken, or after Abort; turn 3's, which is
// as large as the vector, is its sender's to keep.
func (c *Client) Resend(t Turn) []byte {
	if t < TurnAdvertise || t >= TurnDone {
		return nil
	}
	return bytes.Clone(c.sent[t])
}

// ShardSize is |U1|, 0 before Share.
func (c *Client) ShardSize() int { return len(c.entries) }

// Abort leaves the round and erases every secret. Idempotent.
func (c *Client) Abort() {
	c.eraseSecrets()
	c.sent = [TurnDone][]byte{}
	c.erased, c.next = true, TurnDone
}

// eraseSigner clears a per-round signing key; an identity key is the caller's.
func (c *Client) eraseSigner() {
	if !c.cfg.Identified {
		clear(c.signer)
	}
	c.signer = nil
}

// eraseSecrets clears what Go lets one clear. Copies that crypto/ecdh and
// crypto/hpke keep inside their keys are dropped, to be collected.
func (c *Client) eraseSecrets() {
	c.eraseSigner()
	clear(c.maskA[:])
	clear(c.selfA[:])
	clear(c.agreed)
	clear(c.shares)
	c.sealing, c.agreed, c.shares, c.identity = nil, nil, nil, nil
}
