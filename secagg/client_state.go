package secagg

import "bytes"

// Delivered reports whether Deliver has succeeded: from then on Mask can be called.
func (c *Client) Delivered() bool { return c.delivered }

// Resend returns the bytes of the message sent in a turn, to send them again after a reconnect. It
// is nil if that turn has not been taken, after Abort, and for turn 3, whose message is as large as
// the vector and is the caller's to keep.
func (c *Client) Resend(t Turn) []byte {
	if t < TurnAdvertise || t >= TurnDone {
		return nil
	}
	return bytes.Clone(c.sent[t])
}

// ShardSize is the number of devices in the shard, 0 before Share.
func (c *Client) ShardSize() int { return len(c.entries) }

// Abort leaves the round and erases every secret. It may be called several times.
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
