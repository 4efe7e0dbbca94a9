// Package card is a job's privacy card: what a job promises, to whom it does, on what that rests, and how well each
// assumption is watched, in one machine-readable file. Its parts are those of NIST SP 800-226 (Guidelines for
// Evaluating Differential Privacy Guarantees): the guarantee and its unit, the mechanism, the trust model, what of the
// data is exposed. It computes no epsilon: the numbers are those of the job's accountant.
//
// The coordinator signs it with a key of its job's announcement. A device holds it against that announcement before it
// joins (Card.Holds), and keeps it. docs/PROTOCOL.md has the format.
package card

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job/statement"
)

// Path is where a coordinator serves its job's card.
const Path = "/v1/job/card"

// Most bounds the file in bytes.
const Most = 64 << 10

// version is that of the format.
const version = 1

// ErrCard is a card that cannot be read, is not signed by its job's coordinator, or contradicts its job.
var ErrCard = errors.New("the job's privacy card is unusable")

// A Card answers what anybody has to know to judge a job's guarantee.
type Card struct {
	Version int    `json:"version"` // of this format: 1
	Job     string `json:"job"`
	ID      string `json:"id,omitempty"` // TaskID in hexadecimal; empty: of a job file, which no coordinator runs yet

	Asks        *statement.Statement `json:"asks,omitempty"` // who asks, in their own words
	Guarantee   Guarantee            `json:"guarantee"`
	Mechanism   Mechanism            `json:"mechanism"`
	Exposure    []string             `json:"exposure"` // what leaves a device, and who sees it
	Assumptions []Assumption         `json:"assumptions"`
	NotCovered  []string             `json:"not_covered"`
}

// Guarantee is what is promised, in the terms of differential privacy.
type Guarantee struct {
	Unit      string `json:"unit"`      // whose presence is hidden: device or provider
	Adjacency string `json:"adjacency"` // what two worlds differ in
	// Rounds are those that Epsilons are about: all of the job's.
	Rounds int `json:"rounds"`
	// Budget is the epsilon at which the job stops, against Observer; Simulated: of a larger population, which no
	// device of this job is part of.
	Budget    float64   `json:"budget"`
	Observer  string    `json:"observer"`
	Simulated bool      `json:"simulated,omitempty"`
	Epsilons  []Epsilon `json:"epsilons"`
	Month     Month     `json:"month"`
	Fleet     Fleet     `json:"fleet"`
}

// Epsilon is what holds against one observer.
type Epsilon struct {
	Observer string `json:"observer"` // public, coalition, participants or coordinator
	Sees     string `json:"sees"`
	// Trusts says that it holds only if the coordinator adds its noise and draws fairly.
	Trusts bool `json:"trusts_coordinator"`
	// None says that nothing holds; the numbers are 0 then.
	None       bool    `json:"none,omitempty"`
	Epsilon    float64 `json:"epsilon"`
	Lower      float64 `json:"epsilon_lower"` // no better composition of the same rounds is below
	Delta      float64 `json:"delta"`
	Accountant string  `json:"accountant,omitempty"`
	Sampling   string  `json:"sampling,omitempty"` // what is assumed of the cohorts
	Assumes    string  `json:"assumes,omitempty"`
}

// Month bounds what 30 days can cost.
type Month struct {
	Rounds  int     `json:"rounds"`  // that may fall into them
	Epsilon float64 `json:"epsilon"` // against the budget's observer
	Delta   float64 `json:"delta"`
	Why     string  `json:"why"`
}

// Fleet bounds what all jobs of the coordinator over one pool of devices can cost together. Epsilon 0: nothing does.
type Fleet struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
	Why     string  `json:"why"`
}

// Mechanism is how noise gets into what is released. All of it is in the job's announcement, too.
type Mechanism struct {
	Name            string  `json:"name"`
	Noise           string  `json:"noise"` // whose the budget counts: coordinator, devices or silo
	NoiseMultiplier float64 `json:"noise_multiplier"`
	OwnNoise        float64 `json:"own_noise"` // of each device, over the clip norm
	Honest          uint32  `json:"honest"`    // devices whose own noise is counted on
	ClipNorm        float64 `json:"clip_norm"` // of the first round
	SamplingRate    float64 `json:"sampling_rate"`
	ProviderRate    float64 `json:"provider_rate"`
	Providers       uint32  `json:"providers"` // most of a device
	Groups          uint32  `json:"groups"`    // of a unit's examples
	Population      uint64  `json:"population"`
	Rounds          uint64  `json:"rounds"`
	Budget          float64 `json:"budget"`
	Delta           float64 `json:"delta"`
	Observer        string  `json:"observer"`
	Accountant      string  `json:"accountant"`
	Simulated       bool    `json:"simulated"`
	ShardFloor      uint16  `json:"shard_floor"` // least devices of a sum
	ShardMax        uint16  `json:"shard_max"`
	Corrupt         float64 `json:"corrupt"` // share of the devices that may collude
	BreachBits      uint16  `json:"breach_bits"`
	SemiHonest      bool    `json:"semi_honest"`
	Logged          bool    `json:"logged"` // a log shows the keys of all devices
	// Of noise that cancels between releases: releases from one that a device is in to its next, at
	// least; rounds that one round's noise is cancelled in; and the coefficients' exponent. 0: it does not cancel.
	Separation uint32 `json:"separation,omitempty"`
	Band       uint32 `json:"band,omitempty"`
	Eighths    uint8  `json:"eighths,omitempty"`
}

// banded are the rows of such noise from the first on; zero if it does not cancel.
func (m Mechanism) banded() dp.Banded {
	if m.Separation == 0 {
		return dp.Banded{}
	}
	return dp.Banded{Band: m.Band, Separation: m.Separation, Eighths: m.Eighths, Row: 1}
}

// Assumption is what a number rests on, and what would notice that it does not hold.
type Assumption struct {
	What    string   `json:"what"`
	Of      []string `json:"of"` // the observers whose epsilon rests on it
	Watches []Watch  `json:"watched_by"`
}

// Watch is a test of an assumption.
type Watch struct {
	Test string `json:"test"`
	Runs string `json:"runs"` // when, and by whom
	// Flaw is what was planted, and found Found times Of times: with confidence 95 % it finds that with probability
	// Power at least. Of 0: no chance is in the test, or its power was not measured, as Note says.
	Flaw  string  `json:"flaw,omitempty"`
	Found int     `json:"found,omitempty"`
	Of    int     `json:"of,omitempty"`
	Power float64 `json:"power_at_least,omitempty"`
	Note  string  `json:"note,omitempty"`
}

// Parse reads a card.
func Parse(b []byte) (c Card, err error) {
	if len(b) > Most {
		return c, fmt.Errorf("%w: it has %d bytes, limit %d", ErrCard, len(b), Most)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("%w: %w", ErrCard, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return c, fmt.Errorf("%w: something follows it", ErrCard)
	}
	if c.Version != version {
		return c, fmt.Errorf("%w: version %d, this program reads %d", ErrCard, c.Version, version)
	}
	return c, nil
}

// Against returns what holds against an observer; ok is false if the card does not say.
func (c *Card) Against(o dp.Observer) (e Epsilon, ok bool) {
	for _, e := range c.Guarantee.Epsilons {
		if e.Observer == string(o) {
			return e, true
		}
	}
	return e, false
}
