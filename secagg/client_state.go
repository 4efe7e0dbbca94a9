package secagg

import "bytes"

// Next is the turn whose message the client sends next, TurnDone after Reveal or
// Abort.
func (c *Client) Next() Turn { return c.next }

// Resend returns the encoding of the message sent in a turn, for a reconnect: the
// same bytes. Nil if that turn has not been taken, or after Abort.
func (c *Client) Resend(t Turn) []byte {
	if t < TurnAdvertise || t >= TurnDone {
		return nil
	}
	return bytes.Clone(c.sent[t])
}

// Threshold is t of the device's shard, 0 before Share.
func (c *Client) Threshold() int { return c.threshold }

// ShardSize is |U1|, 0 before Share.
func (c *Client) ShardSize() int { return len(c.entries) }

// Peers lists the verify keys of the shard in roster order, this device's own
// among them (identities if Identified); nil before Share.
func (c *Client) Peers() []ID {
	var out []ID
	for i := range c.entries {
		out = append(out, c.entries[i].Keys.Verify)
	}
	return out
}

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
