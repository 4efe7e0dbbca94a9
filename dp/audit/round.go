package audit

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/leaf/uniform"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/secagg"
)

// stays is the fate of a member that answers every turn.
const stays = round.Releasing

// outcome is how a round ended.
type outcome struct {
	released  bool    // else it was charged, and nothing was released
	charged   bool    // before anything was signed or released, as far as that needs it
	noiseOnly bool    // what was released holds no sum
	members   []int   // whose vectors are in the sum
	sizes     []int   // of the shards, larger ones first; nil if none were cut
	parts     [][]int // the members in the sum, by shard of the cut; nil for a shard of which nothing is
}

// player drives the real state machine of one round, in the place of an engine and
// its devices: who is there answers at once, and who vanishes is lost.
type player struct {
	j     job.Job
	fate  func(member int) round.State // the turn that a member does not answer any more
	rnd   io.Reader                    // of the cut
	dealt int                          // groups that devices are dealt into, where they are
	m     *round.Machine

	cohort []round.Device
	queue  []round.Event
	out    outcome
	cut    [][]round.Device
	sums   map[int][]int // by shard: whose vectors are in it
	waits  map[int]round.State
	done   bool
	err    error

	intended, early bool // the intent was to be written; signatures went out before
}

// play makes a round of a drawn cohort, whose devices are dealt into so many groups.
func play(j job.Job, dealt int, cohort []int, fate func(member int) round.State, rnd io.Reader) (outcome, error) {
	cfg := round.Config{Floor: j.Cohort.Floor, Drawn: j.Cohort.SamplingRate < 1, Enough: 1, Grace: time.Second}
	for s := range cfg.Limits {
		cfg.Limits[s] = round.Limit{Timeout: time.Minute, Quorum: j.Shard.Floor}
	}
	for _, member := range cohort {
		cfg.Cohort = append(cfg.Cohort, round.Device(member))
	}
	p := &player{j: j, dealt: dealt, fate: fate, rnd: rnd, cohort: cfg.Cohort, sums: map[int][]int{}, waits: map[int]round.State{}}
	var err error
	if p.m, err = round.New(cfg); err != nil {
		return outcome{}, fmt.Errorf("audit: %w", err)
	}
	for p.queue = []round.Event{round.Start{}}; !p.done && p.err == nil; {
		if len(p.queue) == 0 && !p.expire() {
			return outcome{}, fmt.Errorf("audit: a round in %v waits for nobody", p.m.State())
		}
		ev := p.queue[0]
		p.queue = p.queue[1:]
		for _, e := range p.m.Take(ev) {
			p.do(e)
		}
	}
	return p.out, p.err
}

// expire lets the deadlines of all states pass that still wait.
func (p *player) expire() bool {
	for shard, state := range p.waits {
		delete(p.waits, shard)
		p.queue = append(p.queue, round.Deadline{Shard: shard, State: state})
	}
	return len(p.queue) > 0
}

// answers lets the devices that a state waits for answer it, or be lost.
func (p *player) answers(devices []round.Device, turn round.State) {
	for _, d := range devices {
		if p.fate(int(d)) <= turn {
			p.queue = append(p.queue, round.Lost{Device: d})
		} else {
			p.queue = append(p.queue, round.Received{Device: d, Turn: turn})
		}
	}
}

func (p *player) do(e round.Effect) {
	switch e := e.(type) {
	case round.Await:
		p.waits[e.Shard] = e.State
		if e.State == round.Gathering {
			p.answers(p.cohort, round.Gathering)
		}
	case round.Assign:
		p.answers(e.Devices, round.Keying)
	case round.Cut:
		delete(p.waits, round.Whole)
		p.queue = append(p.queue, p.shards(e.Devices))
	case round.SendRoster:
		p.answers(p.cut[e.Shard], round.Sharing)
	case round.DeliverShares:
		p.answers(e.Members, round.Collecting)
	case round.PersistSurvivors:
		for _, d := range e.Members {
			p.sums[e.Shard] = append(p.sums[e.Shard], int(d))
		}
		p.queue = append(p.queue, round.Stored{Shard: e.Shard})
	case round.AnnounceSurvivors:
		p.answers(e.Members, round.Confirming)
	case round.PersistIntent:
		p.intended = true
		p.queue = append(p.queue, round.Stored{Shard: round.Whole})
	case round.SendSignatures:
		p.early = p.early || !p.intended
		p.answers(e.Members, round.Unmasking)
	case round.Release:
		p.out.charged = p.intended && !p.early
		p.out.released, p.out.noiseOnly = true, e.NoiseOnly
		p.out.parts = make([][]int, len(p.cut))
		for _, shard := range e.Shards {
			p.out.parts[shard] = p.sums[shard]
			p.out.members = append(p.out.members, p.sums[shard]...)
		}
		p.queue = append(p.queue, round.Released{})
	case round.Finish:
		p.done = true
	case round.Charge:
		p.out.charged = true
	case round.FailShard, round.Drop, round.Reject:
	default:
		p.err = fmt.Errorf("audit: effect %T is unknown", e)
	}
}

// shards deals those who sent keys, or cuts them where there are no coins, as secagg does.
func (p *player) shards(devices []round.Device) round.Event {
	masking := p.j.Masking()
	groups, left, err := p.groups(masking, len(devices))
	if errors.Is(err, secagg.ErrBelowFloor) {
		return round.Abort{Reason: err.Error()}
	}
	if err != nil {
		p.err = fmt.Errorf("audit: cutting shards: %w", err)
		return round.Abort{}
	}
	if trim := p.j.Shard.Trim; len(groups) <= 2*trim {
		return round.Abort{Reason: "too few shards to trim"}
	}
	var ev round.Sharded
	for _, i := range left {
		ev.Left = append(ev.Left, devices[i])
	}
	for _, group := range groups {
		var members []round.Device
		for _, i := range group {
			members = append(members, devices[i])
		}
		t, err := masking.Threshold(len(members))
		if err != nil {
			p.err = fmt.Errorf("audit: %w", err)
			return round.Abort{}
		}
		p.cut = append(p.cut, members)
		p.out.sizes = append(p.out.sizes, len(members))
		ev.Shards = append(ev.Shards, round.Shard{Members: members, Threshold: t})
	}
	slices.SortFunc(p.out.sizes, func(a, b int) int { return b - a })
	return ev
}

func (p *player) groups(masking secagg.Config, n int) (groups [][]int, left []int, err error) {
	if p.j.Grouped() {
		return masking.Groups(p.rnd, n, p.dealt)
	}
	sizes, err := masking.Sizes(n, p.j.Shard.Size)
	if err != nil {
		return nil, nil, err
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if err := uniform.Shuffle(p.rnd, order); err != nil {
		return nil, nil, err
	}
	for _, size := range sizes {
		groups, order = append(groups, order[:size]), order[size:]
	}
	return groups, nil, nil
}
