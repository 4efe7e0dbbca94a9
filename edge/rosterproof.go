package edge

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// A RosterProof proves to anybody which identities were in a device's shard of one round. It holds
// the job, the plan and the roster exactly as they were sent to the device; their signatures and
// the log's head in the plan prove the rest. It holds no secret.
type RosterProof struct {
	Version int    `json:"version"`
	Job     []byte `json:"job"`
	Plan    []byte `json:"plan"`
	Roster  []byte `json:"roster"`
}

const rosterProofVersion = 2 // 1: of jobs and plans before protocol 15

// MaxRosterProof bounds the encoding of a RosterProof in bytes.
const MaxRosterProof = 4 << 20

// ErrRosterProof is a roster proof that cannot be read or does not hold.
var ErrRosterProof = errors.New("edge: the roster is not proved")

// A ProvenRoster is what a RosterProof proves.
type ProvenRoster struct {
	Job     string         `json:"job"`
	Task    string         `json:"task"` // what names the job, in hexadecimal
	Round   uint64         `json:"round"`
	Log     string         `json:"log"`  // the key of the log of enrolled keys, in hexadecimal
	Keys    int64          `json:"keys"` // in the log at the round
	Head    string         `json:"head"` // as the log's key signed it
	Peers   Peers          `json:"peers"`
	Devices []ProvenDevice `json:"devices"`
}

// A ProvenDevice is a device that was in the shard.
type ProvenDevice struct {
	Identity string    `json:"identity"` // hexadecimal
	Leaf     int64     `json:"leaf"`     // its number in the log
	Enrolled time.Time `json:"enrolled"` // as the log says
}

// ParseRosterProof decodes a RosterProof from JSON.
func ParseRosterProof(b []byte) (*RosterProof, error) {
	if len(b) > MaxRosterProof {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrRosterProof, len(b), MaxRosterProof)
	}
	p := new(RosterProof)
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRosterProof, err)
	}
	if p.Version != rosterProofVersion {
		return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrRosterProof, p.Version, rosterProofVersion)
	}
	return p, nil
}

// Verify checks every signature of the roster, that all of its devices are in the log
// under the head that the plan binds, and that their own keys deal them into one group.
func (p *RosterProof) Verify() (*ProvenRoster, error) {
	fail := func(err error) (*ProvenRoster, error) { return nil, fmt.Errorf("%w: %w", ErrRosterProof, err) }
	job, err := wire.ParseJob(p.Job)
	if err != nil {
		return fail(err)
	}
	plan, err := wire.ParsePlan(p.Plan)
	if err != nil {
		return fail(err)
	}
	task := wire.TaskID(p.Job)
	switch {
	case plan.Task != task:
		return fail(errors.New("the plan is of another job"))
	case job.LogKey == [32]byte{}:
		return fail(fmt.Errorf("the job %q has no log of enrolled keys", Escape(job.Name, false)))
	case job.Dealt != (plan.Groups > 0):
		return fail(fmt.Errorf("the plan names %d groups in a job that is dealt: %v", plan.Groups, job.Dealt))
	}
	terms, err := contract.Announced(job).Terms()
	if err != nil {
		return fail(err)
	}
	vector, err := terms.Planned(plan)
	if err != nil {
		return fail(err)
	}
	cfg := terms.Masking(vector)
	if err := cfg.Validate(); err != nil {
		return fail(err)
	}
	var roster secagg.Roster
	if err := roster.UnmarshalBinary(p.Roster); err != nil {
		return fail(err)
	}
	head, err := log.OpenHead(plan.Head, job.LogKey, "")
	if err != nil {
		return fail(err)
	}
	members, keys, err := enrolments(&cfg, head, &roster)
	if err != nil {
		return fail(err)
	}
	if err := checkDeal(&cfg, plan, head, &roster); err != nil {
		return fail(err)
	}
	if err := roster.Verify(cfg, secagg.PlanHash(hex.EncodeToString(task[:]), plan.Round, cfg, p.Plan), rand.Reader); err != nil {
		return fail(err)
	}
	peers, _ := look(knownLog{}, members, keys, [32]byte{}, head.Size)
	peers.Groups = plan.Groups
	out := &ProvenRoster{Job: Escape(job.Name, false), Task: hex.EncodeToString(task[:]), Round: plan.Round,
		Log: hex.EncodeToString(job.LogKey[:]), Keys: head.Size, Head: string(plan.Head), Peers: *peers}
	for i, key := range keys {
		out.Devices = append(out.Devices, ProvenDevice{hex.EncodeToString(key[:]), members.Leaves[i], time.Unix(int64(members.At[i]), 0).UTC()})
	}
	slices.SortFunc(out.Devices, func(a, b ProvenDevice) int { return int(a.Leaf - b.Leaf) })
	return out, nil
}

// prove hands the round's roster on, for who keeps it.
func (c *client) prove(r *round, roster []byte) {
	if c.cfg.Roster == nil || r.found == nil {
		return
	}
	job, err := c.job.Job.AppendBinary(nil)
	if err != nil {
		return // it was read from these bytes
	}
	c.cfg.Roster(r.plan.Round, c.job.task, &RosterProof{Version: rosterProofVersion, Job: job, Plan: r.planBytes, Roster: bytes.Clone(roster)})
}
