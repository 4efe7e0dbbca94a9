package edge

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg/log"
)

// ErrLog is a log of enrolled keys that does not extend the one this device has seen: a fork, an
// older state, or one without proof that it extends it.
var ErrLog = errors.New("edge: the coordinator's log of enrolled keys does not go on from what this device knows of it")

// knownLog is what an account remembers about a log.
type knownLog struct {
	Note string     `json:"note"` // its last head, as the log's key signed it
	Seen []seenHead `json:"seen"` // heads by when this device was shown them, the oldest first
	// Refused is another head that the log's key has signed and that does not continue from
	// Note: with it, what shows to anybody else that the log was forked, or was gone back on.
	Refused string `json:"refused,omitempty"`
}

// seenHead: by this device's clock the log was last shown with so many keys then.
type seenHead struct {
	Size int64 `json:"size"`
	At   int64 `json:"at"` // seconds since 1970
}

// What is kept of the heads that were seen: of the last 8 minutes, the last 8 pairs of
// minutes, the last 8 times 4 minutes and so on for years the last head of each, so that the
// age of a leaf is known to within half of it.
const (
	seenBlocks = 8
	seenLevels = 21 // of 2^20 minutes, two years
	mostSeen   = seenBlocks*seenLevels + 1
)

// see notes a head.
func (k *knownLog) see(size int64, now time.Time) {
	at, seen := now.Unix(), k.Seen
	if n := len(seen); n > 0 && seen[n-1].Size == size {
		seen = seen[:n-1] // it still has no more keys
	}
	seen = append(seen, seenHead{size, at})
	keep := make([]bool, len(seen))
	keep[0] = true
	for level := range seenLevels {
		block := func(at int64) int64 { return at / 60 >> level }
		for i, h := range seen {
			last := i == len(seen)-1 || block(seen[i+1].At) != block(h.At)
			keep[i] = keep[i] || last && block(h.At) > block(at)-seenBlocks
		}
	}
	k.Seen = nil
	for i, h := range seen {
		if keep[i] {
			k.Seen = append(k.Seen, h)
		}
	}
}

// since is when a leaf came into the log, as far as this device can tell: when the log's
// keeper says, but not before it was shown a head without it.
func (k *knownLog) since(leaf int64, at uint64) int64 {
	since := int64(at)
	for _, h := range k.Seen {
		if h.Size <= leaf {
			since = max(since, h.At)
		}
	}
	return since
}

// heldKeys is how many keys the log had whose head this account keeps; 0: it keeps none.
func (a *Account) heldKeys(key [32]byte) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	head, err := a.held(key)
	if err != nil {
		return 0
	}
	return uint64(head.Size)
}

// held is the head that the account keeps of a log, an empty one of one that it does not
// know; a.mu is held.
func (a *Account) held(key [32]byte) (log.Head, error) {
	k := a.state.Logs[hex.EncodeToString(key[:])]
	if k == nil {
		return log.Head{}, nil
	}
	return log.OpenHead([]byte(k.Note), key, "")
}

// follow takes the next head of a log, and keeps it before anything rests on it. What does
// not continue from the head that is kept is refused, with ErrLog, and kept beside it.
func (a *Account) follow(key [32]byte, note []byte, grown wire.Growth, now time.Time) (log.Head, error) {
	head, err := log.OpenHead(note, key, "")
	if err != nil {
		return head, fmt.Errorf("%w: %w", ErrLog, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name := hex.EncodeToString(key[:])
	held, err := a.held(key)
	if err != nil { // the account is this device's own
		return head, fmt.Errorf("%w: log %.8s: %w", ErrAccount, name, err)
	}
	if head.Size > held.Size && held.Size > 0 && grown.From != uint64(held.Size) {
		err = fmt.Errorf("%w: it is shown from %d keys on, and this device knows %d", log.ErrProof, grown.From, held.Size)
	} else {
		proof := make([]log.Hash, len(grown.Hashes)/len(log.Hash{}))
		for i := range proof {
			copy(proof[i][:], grown.Hashes[i*len(proof[i]):])
		}
		err = log.CheckConsistency(proof, held, head)
	}
	k := a.state.Logs[name]
	if err != nil {
		if k != nil && k.Refused == "" {
			k.Refused = string(note)
		}
		return head, errors.Join(fmt.Errorf("%w: %w. Its devices may be invented, or an older copy of its folder was put back: ask its operator; "+
			"'starling account --data FILE' prints both heads, which prove it to others, and with --forget-log the device begins anew", ErrLog, err), a.keep())
	}
	if k == nil {
		k = new(knownLog)
		if a.state.Logs == nil {
			a.state.Logs = map[string]*knownLog{}
		}
		a.state.Logs[name] = k
	}
	if n := len(k.Seen); n > 0 && k.Note == string(note) && now.Unix()-k.Seen[n-1].At < hour {
		return head, nil
	}
	k.Note = string(note)
	k.see(head.Size, now)
	return head, a.keep()
}

// mergeLogs takes over what another account knows of logs: of one that both know, the
// longer. That the shorter is the beginning of it shows when its coordinator next proves
// how it goes on; a.mu is held.
func (a *Account) mergeLogs(logs map[string]*knownLog) {
	for name, from := range logs {
		if a.state.Logs == nil {
			a.state.Logs = map[string]*knownLog{}
		}
		k := a.state.Logs[name]
		last := func(k *knownLog) int64 {
			if len(k.Seen) == 0 {
				return 0
			}
			return k.Seen[len(k.Seen)-1].Size
		}
		if k == nil || last(from) > last(k) {
			copied := *from
			copied.Seen = slices.Clone(from.Seen)
			if k != nil && copied.Refused == "" {
				copied.Refused = k.Refused
			}
			a.state.Logs[name] = &copied
		}
	}
}

// LogAccount is what an account remembers about a log of enrolled keys.
type LogAccount struct {
	Key  string    `json:"key"`  // that signs its heads, in hexadecimal
	Keys int64     `json:"keys"` // enrolled, by its last head
	Seen time.Time `json:"seen"` // when that was shown last
	Head string    `json:"head"` // as it was signed
	// Refused is another head, signed by the same key, that does not continue from Head.
	Refused string `json:"refused,omitempty"`
}

// Logs returns the logs of enrolled keys that the account knows, sorted by key.
func (a *Account) Logs() (logs []LogAccount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.state.Logs)) {
		k := a.state.Logs[name]
		of := LogAccount{Key: name, Head: k.Note, Refused: k.Refused}
		if n := len(k.Seen); n > 0 {
			of.Keys, of.Seen = k.Seen[n-1].Size, time.Unix(k.Seen[n-1].At, 0).UTC()
		}
		logs = append(logs, of)
	}
	return logs
}

// ForgetLog forgets the one log whose key begins with the given hexadecimal digits, at least eight.
// The next head of that log is then accepted whatever it says.
func (a *Account) ForgetLog(prefix string) (key string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []string
	for name := range a.state.Logs {
		if len(prefix) >= 8 && strings.HasPrefix(name, strings.ToLower(prefix)) {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%w: %d logs have a key that begins with the at least 8 digits %.80q", ErrAccount, len(found), prefix)
	}
	delete(a.state.Logs, found[0])
	return found[0], a.keep()
}

// known is a copy of what the account keeps of a log.
func (a *Account) known(key [32]byte) knownLog {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k := a.state.Logs[hex.EncodeToString(key[:])]; k != nil {
		return knownLog{k.Note, slices.Clone(k.Seen), k.Refused}
	}
	return knownLog{}
}

// greetLog takes the head that the coordinator shows when a device comes.
func (c *client) greetLog(welcome *wire.Welcome, m *wire.Enrolled) error {
	switch key := c.job.LogKey; {
	case welcome.LogKey != key:
		return &ProtocolError{errors.New("it welcomed to another log of enrolled keys than its job has")}
	case key == [32]byte{} && len(m.Head) > 0:
		return &ProtocolError{errors.New("it shows a log of enrolled keys that its job does not have")}
	case len(m.Head) == 0:
		return nil // each plan has one
	default:
		_, err := c.witnessed(m.Head, m.Growth)
		if errors.Is(err, log.ErrUnwitnessed) { // nothing rests on it: plans are held to the same
			c.events.send(Event{State: Waiting, Text: fmt.Sprintf("%v; this device takes part in no round before it has", err)})
			err = nil
		}
		return err
	}
}

// witnessed takes the next head of the job's log, and says with log.ErrUnwitnessed that it is
// one which the witness that the owner names has not signed. It is followed all the same, so
// that one which the witness signs later shows whether it was another log's.
func (c *client) witnessed(note []byte, grown wire.Growth) (log.Head, error) {
	head, err := c.cfg.Account.follow(c.job.LogKey, note, grown, time.Now())
	if err != nil || c.cfg.Policy.Log == "" {
		return head, err
	}
	head, err = log.OpenHead(note, c.job.LogKey, c.cfg.Policy.Log)
	if err != nil && !errors.Is(err, log.ErrUnwitnessed) { // its signature is forged
		err = fmt.Errorf("%w: %w", ErrLog, err)
	}
	return head, err
}

// fatalLog is what of an error ends this device's part in the job.
func fatalLog(err error) error {
	if errors.Is(err, ErrLog) || errors.Is(err, ErrAccount) {
		return err
	}
	return nil
}

// planLog takes the head that a plan binds.
func (c *client) planLog(p *wire.Plan, grown wire.Growth) (log.Head, error) {
	if c.job.LogKey == ([32]byte{}) {
		if len(p.Head) > 0 {
			return log.Head{}, errors.New("plan has the head of a log of enrolled keys, and the job has none")
		}
		return log.Head{}, nil
	}
	return c.witnessed(p.Head, grown)
}
