package edge

import (
	"fmt"
	"slices"
	"time"

	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// Peers is what the log of enrolled keys proves about a shard.
type Peers struct {
	Devices  int   `json:"devices"`  // in the shard, this one included; all are in the log
	Together int   `json:"together"` // the most of them that were enrolled within one minute
	Newest   int64 `json:"newest"`   // when the last of the others was enrolled, seconds since 1970
	// Later counts the devices that are missing from a head of the log that this device was shown
	// more than an hour after they are said to have been enrolled. (A head is made at a round's
	// draw: a later enrolment is in the next one.)
	Later int   `json:"later,omitempty"`
	Keys  int64 `json:"keys"` // in the log
	// Groups is the number of groups into which the round's devices were dealt by their own keys,
	// the shard being one of them; 0: the coordinator chose who is in it.
	Groups uint32 `json:"groups,omitempty"`
}

// String describes the shard for the device's owner.
func (p *Peers) String() string {
	text := fmt.Sprintf("your shard: %d devices of %d enrolled, %d of them enrolled within one minute of each other", p.Devices, p.Keys, p.Together)
	if p.Later > 0 {
		text += fmt.Sprintf("; %d are newer than their coordinator says", p.Later)
	}
	switch p.Groups {
	case 0:
		text += "; who is in it was the coordinator's choice"
	case 1:
		text += "; all of the round are in one group"
	default:
		text += fmt.Sprintf("; dealt into one of %d groups by its devices' own keys", p.Groups)
	}
	return text
}

// within is the time, in seconds, in which devices count as enrolled together.
const within = 60

// enrolments checks a shard's roster against the log: each of its devices is in it,
// under the head that the plan binds.
func enrolments(cfg *secagg.Config, head log.Head, roster *secagg.Roster) (*log.Members, [][32]byte, error) {
	var m log.Members
	if err := m.UnmarshalBinary(roster.Enrolments); err != nil {
		return nil, nil, err
	}
	keys := make([][32]byte, len(roster.Entries))
	for i := range roster.Entries {
		id, _ := roster.Entries[i].Member(cfg)
		keys[i] = id
	}
	return &m, keys, m.Check(head, keys)
}

// look sums up what a shard's proof says. since is when each of its devices was enrolled,
// as this device can tell; own is in it too.
func look(k knownLog, m *log.Members, keys [][32]byte, own [32]byte, size int64) (p *Peers, since []int64) {
	p = &Peers{Devices: len(keys), Keys: size}
	since = make([]int64, len(keys))
	for i := range keys {
		since[i] = k.since(m.Leaves[i], m.At[i])
		if since[i] > int64(m.At[i])+hour {
			p.Later++
		}
		if keys[i] != own {
			p.Newest = max(p.Newest, since[i])
		}
	}
	sorted := slices.Sorted(slices.Values(since))
	for i, first := 0, 0; i < len(sorted); i++ {
		for sorted[i]-sorted[first] > within {
			first++
		}
		p.Together = max(p.Together, i-first+1)
	}
	return p, since
}

// checkAge refuses a shard in which so many of the others were enrolled more recently than
// the owner wants that, if all of these were the coordinator's, what is claimed of secure
// aggregation would not hold: n devices with threshold t withstand c < 2t - n that lie, or
// c < t where the coordinator is presumed to follow the protocol.
func (p *Policy) checkAge(cfg *secagg.Config, since []int64, keys [][32]byte, own [32]byte, now time.Time) error {
	if p.PeerAge == 0 {
		return nil
	}
	n, young, oldest := len(keys), 0, now.Add(-p.PeerAge).Unix()
	for i := range keys {
		if keys[i] != own && since[i] > oldest {
			young++
		}
	}
	t, err := cfg.Threshold(n)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPlan, err)
	}
	most := 2*t - n - 1
	if cfg.SemiHonest {
		most = t - 1
	}
	if young <= most {
		return nil
	}
	return &PolicyError{Key: "peer_age", What: fmt.Sprintf("%d of the %d other devices of the shard were enrolled less than %v ago", young, n-1, p.PeerAge),
		Why: whyForged, Have: "0s", Want: fmt.Sprintf("at most %d so young, what a shard of %d withstands", most, n)}
}

// tellPeers shows the owner the shard, once all that its roster says was checked.
func (c *client) tellPeers(r *round) {
	if r.found == nil {
		return
	}
	r.peers = r.found
	v := r.event(Keying)
	v.Text = r.peers.String()
	c.events.send(v)
}

// checkRoster checks a roster against the log and the owner's policy.
func (c *client) checkRoster(r *round, roster *secagg.Roster, own [32]byte) error {
	refuse := func(cause, err error) error {
		return &RefusalError{Round: r.plan.Round, Cause: cause, Err: err}
	}
	if n := len(roster.Entries); n < int(c.job.ShardFloor) { // which is not below the owner's
		return refuse(ErrShardFloor, fmt.Errorf("%d devices, floor %d", n, c.job.ShardFloor))
	}
	if err := c.cfg.Policy.checkRoster(roster.Entries, own); err != nil {
		return refuse(ErrShardFloor, err)
	}
	if !r.cfg.Logged {
		return nil
	}
	members, keys, err := enrolments(&r.cfg, r.head, roster)
	if err != nil {
		return refuse(ErrSecagg, fmt.Errorf("the shard is not proved to be enrolled: %w", err))
	}
	if err := checkDeal(&r.cfg, r.plan, r.head, roster); err != nil {
		return refuse(ErrSecagg, fmt.Errorf("the shard was not dealt: %w", err))
	}
	peers, since := look(c.cfg.Account.known(c.job.LogKey), members, keys, own, r.head.Size)
	if err := c.cfg.Policy.checkAge(&r.cfg, since, keys, own, time.Now()); err != nil {
		return refuse(ErrShardFloor, err)
	}
	peers.Groups = r.plan.Groups
	r.found = peers
	return nil
}
