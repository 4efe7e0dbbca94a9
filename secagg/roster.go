package secagg

import (
	"bytes"
	"fmt"
	"io"
)

// checkRoster is what a device checks before it shares a secret, but for the
// signatures: own plan, size, order, every key, and its own keys in their place.
// It returns the device's index. What Enrolments and lots prove is the caller's to check.
// own is the device's entry, of which signatures do not matter.
func checkRoster(cfg *Config, plan *Hash, m *Roster, own *Entry) (int, error) {
	n := len(m.Entries)
	switch {
	case m.Plan != *plan:
		return 0, fmt.Errorf("%w: roster of another plan", ErrBinding)
	case n < cfg.ShardMin:
		return 0, fmt.Errorf("%w: %d devices, floor %d", ErrBelowFloor, n, cfg.ShardMin)
	case n > cfg.ShardMax:
		return 0, fmt.Errorf("%w: %d devices, at most %d", ErrLength, n, cfg.ShardMax)
	case cfg.Logged != (len(m.Enrolments) > 0):
		return 0, fmt.Errorf("%w: %d bytes prove that its devices are enrolled, in a round where that is %v", ErrRoster, len(m.Enrolments), cfg.Logged)
	}
	index := -1
	members := make(map[ID]bool, n)
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
		if err := checkLot(cfg, &e.Lot); err != nil {
			return 0, fmt.Errorf("entry %d: %w", i, err)
		}
		if e.Keys.Verify == own.Keys.Verify {
			if e.Keys.Mask != own.Keys.Mask || !bytes.Equal(e.Keys.Seal, own.Keys.Seal) {
				return 0, fmt.Errorf("%w: this device's keys were changed", ErrRoster)
			}
			if e.Lot != own.Lot {
				return 0, fmt.Errorf("%w: this device's was changed", ErrLot)
			}
			index = i
		}
		switch named := cfg.Logged && !cfg.Identified; {
		case named != (e.Identity != ID{}):
			return 0, fmt.Errorf("%w: entry %d has an identity: %v, want %v", ErrRoster, i, !named, named)
		case !named:
		case members[e.Identity]:
			return 0, fmt.Errorf("%w: entry %d repeats an identity", ErrRoster, i)
		case (index == i) != (e.Identity == own.Identity):
			return 0, fmt.Errorf("%w: entry %d has another identity than its keys", ErrRoster, i)
		}
		members[e.Identity] = true
		if err := e.Keys.check(cfg.Suite); err != nil {
			return 0, fmt.Errorf("entry %d: %w", i, err)
		}
		if cfg.Identified && e.Certificate != [sigSize]byte{} {
			return 0, fmt.Errorf("%w: entry %d has a certificate though rosters are identified", ErrRoster, i)
		}
	}
	if index < 0 {
		return 0, fmt.Errorf("%w: this device is not in it", ErrRoster)
	}
	return index, nil
}

// checkSignatures checks every entry's signature and certificate, and what its identity
// says of its keys, all at once.
func checkSignatures(cfg *Config, plan *Hash, m *Roster, rand io.Reader) error {
	kinds := []string{"keys", "certificate", "identity"}
	switch {
	case cfg.Identified:
		kinds = kinds[:1]
	case !cfg.Logged:
		kinds = kinds[:2]
	}
	each := len(kinds)
	all := make([]signed, 0, each*len(m.Entries))
	for i := range m.Entries {
		e := &m.Entries[i]
		all = append(all, signed{&e.Keys.Verify, keyStatement(labelKeys, plan, &e.Keys), &e.Sign})
		if !cfg.Identified {
			all = append(all, signed{&cfg.Authority, keyStatement(labelCert, plan, &e.Keys), &e.Certificate})
			if cfg.Logged {
				all = append(all, signed{(*[32]byte)(&e.Identity), keyStatement(labelVouch, plan, &e.Keys), &e.Vouch})
			}
		}
	}
	switch bad, err := verifyAll(rand, all); {
	case err != nil:
		return err
	case bad < 0:
		return nil
	default:
		return refuse(TurnShare, fmt.Errorf("%w: entry %d, %s", ErrSignature, bad/each, kinds[bad%each]))
	}
}

// Verify checks a roster afterwards, for a party that was not in it: plan, size, order, every key
// and every signature. rand is as for NewClient. Errors are those of Client.Share.
func (m *Roster) Verify(cfg Config, plan Hash, rand io.Reader) error {
	if len(m.Entries) == 0 {
		return fmt.Errorf("%w: it is empty", ErrBelowFloor)
	}
	// Any of the entries is as good as another.
	if _, err := checkRoster(&cfg, &plan, m, &m.Entries[0]); err != nil {
		return err
	}
	return checkSignatures(&cfg, &plan, m, rand)
}
