package secagg

import (
	"bytes"
	"fmt"
)

// checkRoster is what a device checks before it shares a secret: own plan, size,
// order, every key, every signature, every certificate, and its own keys in their
// place. It returns the device's index.
func checkRoster(cfg *Config, plan *Hash, m *Roster, own *Keys) (int, error) {
	n := len(m.Entries)
	switch {
	case m.Plan != *plan:
		return 0, fmt.Errorf("%w: roster of another plan", ErrBinding)
	case n < cfg.ShardMin:
		return 0, fmt.Errorf("%w: %d devices, floor %d", ErrBelowFloor, n, cfg.ShardMin)
	case n > cfg.ShardMax:
		return 0, fmt.Errorf("%w: %d devices, at most %d", ErrLength, n, cfg.ShardMax)
	}
	index := -1
	masks := make(map[[32]byte]bool, n)
	for i := range m.Entries {
		e := &m.Entries[i]
		if i > 0 && bytes.Compare(m.Entries[i-1].Keys.Verify[:], e.Keys.Verify[:]) >= 0 {
			return 0, fmt.Errorf("%w: entry %d out of order or twice", ErrRoster, i)
		}
		if masks[e.Keys.Mask] {
			return 0, fmt.Errorf("%w: entry %d repeats a mask key", ErrRoster, i)
		}
		masks[e.Keys.Mask] = true
		if e.Keys.Verify == own.Verify {
			if e.Keys.Mask != own.Mask || !bytes.Equal(e.Keys.Seal, own.Seal) {
				return 0, fmt.Errorf("%w: this device's keys were changed", ErrRoster)
			}
			index = i
		}
		if err := e.Keys.check(cfg.Suite); err != nil {
			return 0, fmt.Errorf("entry %d: %w", i, err)
		}
		if !verify(e.Keys.Verify[:], keyStatement(labelKeys, plan, &e.Keys), e.Sign[:]) {
			return 0, fmt.Errorf("%w: entry %d, keys", ErrSignature, i)
		}
		if cfg.Identified {
			if e.Certificate != [sigSize]byte{} {
				return 0, fmt.Errorf("%w: entry %d has a certificate though rosters are identified", ErrRoster, i)
			}
			continue
		}
		if !verify(cfg.Authority[:], keyStatement(labelCert, plan, &e.Keys), e.Certificate[:]) {
			return 0, fmt.Errorf("%w: entry %d, certificate", ErrSignature, i)
		}
	}
	if index < 0 {
		return 0, fmt.Errorf("%w: this device is not in it", ErrRoster)
	}
	return index, nil
}
