// Package strength computes what masking withstands: how likely a shard fails for dropouts, and is broken by members who
// collude with the server. Devices do not link it.
//
//	p, err := strength.Choose(strength.Model{Shard: 64, Corrupt: 0.05, Dropout: 0.1})
package strength

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/internal/tail"
)

// A Model says what a job's shards must withstand. Fractions are exact decimals:
// 0.05 means 1/20.
type Model struct {
	Shard      int     // devices in a shard, g
	Threshold  int     // t; 0: the least that reaches BreachBits
	Dropout    float64 // share of devices that drop after sharing, each independently
	Corrupt    float64 // share of devices that collude with the server
	SemiHonest bool    // the server follows the protocol
	Cohort     int     // devices in a round, 0: one shard
	Rounds     int     // of the job, 0: one
	Population int     // enrolled devices; 0: unlimited, so that corruption is independent

	BreachBits int     // breach probability per round, over all shards, at most 2^-BreachBits; 0: 40
	MaxFailure float64 // probability that a shard fails, at most; 0: 0.01
}

// Params are a threshold and what it gives. Logarithms are to base 2; null in JSON (negative
// infinity here) is an impossible event.
type Params struct {
	Model      // with its defaults filled in, and the threshold
	Shards int // per round

	BreachCount  int     // least number of corrupted members that breaks a shard
	Failure      float64 // log2 P[a shard fails], from Dropout
	Breach       float64 // log2 P[a given shard is broken], from Corrupt
	BreachRound  float64 // over all shards of a round, union bound
	BreachJob    float64 // over all rounds, union bound
	HonestInSum  int     // honest devices in any sum revealed, at least, while fewer than BreachCount are corrupted
	ConfigBreach int     // secagg.Config.BreachBits that makes its Threshold choose the same t or more
}

func (m Model) defaults() Model {
	if m.Cohort == 0 {
		m.Cohort = m.Shard
	}
	if m.Rounds == 0 {
		m.Rounds = 1
	}
	if m.BreachBits == 0 {
		m.BreachBits = 40
	}
	if m.MaxFailure == 0 {
		m.MaxFailure = 0.01
	}
	return m
}

func (m Model) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", secagg.ErrConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case m.Shard < 2 || m.Shard > secagg.MaxShard:
		return bad("shard %d not in 2..%d", m.Shard, secagg.MaxShard)
	case m.Threshold < 0 || m.Threshold > m.Shard:
		return bad("threshold %d not in 1..shard=%d", m.Threshold, m.Shard)
	case m.Threshold > 0 && m.Threshold < tail.LeastThreshold(m.Shard, m.SemiHonest):
		return bad("threshold %d below %d, the least for a shard of %d", m.Threshold, tail.LeastThreshold(m.Shard, m.SemiHonest), m.Shard)
	case m.Cohort < m.Shard:
		return bad("cohort %d below one shard of %d", m.Cohort, m.Shard)
	case m.Rounds < 1:
		return bad("rounds %d", m.Rounds)
	case m.Population != 0 && m.Population < m.Cohort:
		return bad("population %d below the cohort %d", m.Population, m.Cohort)
	case m.Population > 1<<24:
		return bad("population %d above 2^24: leave it out, the limit is reached", m.Population)
	case m.BreachBits < 0 || m.BreachBits > 128:
		return bad("breach bits %d not in 0..128", m.BreachBits)
	case !(m.MaxFailure > 0 && m.MaxFailure <= 1):
		return bad("max failure %v not in (0,1]", m.MaxFailure)
	}
	return nil
}

// corruptedTail is the exact upper tail of the number of corrupted devices in a shard.
func (m Model) corruptedTail() (func(int) tail.Tail, error) {
	p, err := decimal("corrupt", m.Corrupt)
	if err != nil {
		return nil, err
	}
	if m.Population == 0 {
		return tail.BinomialFunc(m.Shard, p), nil
	}
	// The shard is a uniform subset of the enrolled devices; a fraction of a
	// corrupted device counts as one.
	marked := ceilMul(p, m.Population)
	return func(k int) tail.Tail { return tail.Hypergeometric(m.Population, marked, m.Shard, k) }, nil
}

func ceilMul(p *big.Rat, n int) int {
	x := new(big.Int).Mul(p.Num(), big.NewInt(int64(n)))
	x.Add(x, p.Denom())
	x.Sub(x, big.NewInt(1))
	return int(x.Quo(x, p.Denom()).Int64())
}

// decimal is the exact rational that a float64's shortest decimal form denotes:
// 0.05 is 1/20.
func decimal(what string, p float64) (*big.Rat, error) {
	if !(p >= 0 && p <= 1) {
		return nil, fmt.Errorf("%w: %s %v not in 0..1", secagg.ErrConfig, what, p)
	}
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(p, 'g', -1, 64))
	if !ok {
		return nil, fmt.Errorf("%w: %s %v", secagg.ErrConfig, what, p)
	}
	return r, nil
}

// Evaluate computes breach and failure of a given threshold. Unlike Choose it refuses nothing.
func Evaluate(m Model) (Params, error) {
	m = m.defaults()
	if err := m.validate(); err != nil {
		return Params{}, err
	}
	if m.Threshold == 0 {
		return Params{}, fmt.Errorf("%w: no threshold to evaluate", secagg.ErrConfig)
	}
	corrupted, err := m.corruptedTail()
	if err != nil {
		return Params{}, err
	}
	drop, err := decimal("dropout", m.Dropout)
	if err != nil {
		return Params{}, err
	}
	p := Params{Model: m}
	p.Shards = (m.Cohort + m.Shard - 1) / m.Shard
	p.BreachCount = tail.BreachCount(m.Shard, m.Threshold, m.SemiHonest)
	breach := corrupted(p.BreachCount)
	p.Breach = breach.Log2()
	p.BreachRound = p.Breach + math.Log2(float64(p.Shards))
	p.BreachJob = p.BreachRound + math.Log2(float64(p.Rounds))
	p.Failure = tail.Binomial(m.Shard, drop, m.Shard-m.Threshold+1).Log2()
	p.HonestInSum = max(m.Threshold-(p.BreachCount-1), 0)
	for p.ConfigBreach < 128 && breach.AtMost(p.ConfigBreach+1) {
		p.ConfigBreach++
	}
	return p, nil
}

// Choose finds the least threshold whose breach probability per round is at most
// 2^-BreachBits, or takes the one given, and refuses with secagg.ErrConfig what
// cannot be met: no threshold is enough, or at the tolerated dropout a shard fails
// more often than MaxFailure.
func Choose(m Model) (Params, error) {
	m = m.defaults()
	if err := m.validate(); err != nil {
		return Params{}, err
	}
	shards := (m.Cohort + m.Shard - 1) / m.Shard
	corrupted, err := m.corruptedTail()
	if err != nil {
		return Params{}, err
	}
	least, ok := tail.ChooseThreshold(m.Shard, m.SemiHonest, m.BreachBits, func(c int) tail.Tail {
		t := corrupted(c)
		return tail.Tail{Num: new(big.Int).Mul(t.Num, big.NewInt(int64(shards))), Den: t.Den}
	})
	if !ok {
		return Params{}, fmt.Errorf("%w: no threshold keeps a round of %d shards of %d below 2^-%d with %v corrupted; use larger shards",
			secagg.ErrConfig, shards, m.Shard, m.BreachBits, m.Corrupt)
	}
	if m.Threshold == 0 {
		m.Threshold = least
	}
	p, err := Evaluate(m)
	if err != nil {
		return Params{}, err
	}
	if m.Threshold < least {
		return Params{}, fmt.Errorf("%w: threshold %d gives a breach probability of 2^%.1f per round, asked is 2^-%d: take %d",
			secagg.ErrConfig, m.Threshold, p.BreachRound, m.BreachBits, least)
	}
	if p.Failure > math.Log2(m.MaxFailure) {
		return Params{}, fmt.Errorf("%w: with threshold %d of %d, needed against %v corrupted, a shard fails with probability %s at %v dropout, asked is %v: use larger shards%s",
			secagg.ErrConfig, m.Threshold, m.Shard, m.Corrupt, power(p.Failure), m.Dropout, m.MaxFailure, semiHonestHint(m.SemiHonest))
	}
	return p, nil
}

func semiHonestHint(already bool) string {
	if already {
		return ""
	}
	return ", or the semi-honest profile where the server is trusted to follow the protocol"
}

func power(log2 float64) string {
	switch {
	case math.IsInf(log2, -1):
		return "0"
	case log2 > -7:
		return fmt.Sprintf("%.3g (2^%.1f)", math.Exp2(log2), log2)
	}
	return fmt.Sprintf("2^%.1f", log2)
}

// Explain describes the parameters and what they assume in a few sentences.
func (p Params) Explain() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("shards         %d of at most %d devices", p.Shards, p.Shard)
	line("threshold      %d of %d", p.Threshold, p.Shard)
	if p.SemiHonest {
		line("server         follows the protocol: a shard breaks when %d members hand it their shares", p.BreachCount)
		line("               (NOT secure against a server that lies about who dropped)")
	} else {
		line("server         may lie: a shard breaks when %d members collude with it (2t > g + corrupted otherwise)", p.BreachCount)
	}
	draw := "each member corrupted independently"
	if p.Population > 0 {
		draw = fmt.Sprintf("members drawn from %d devices", p.Population)
	}
	line("breach         %s per shard at %v corrupted, %s", power(p.Breach), p.Corrupt, draw)
	line("               %s per round of %d shards, %s per job of %d rounds (union bounds)", power(p.BreachRound), p.Shards, power(p.BreachJob), p.Rounds)
	line("shard fails    %s at %v dropout after sharing; a failed shard is left out, the round goes on", power(p.Failure), p.Dropout)
	line("in any sum     at least %d honest devices", p.HonestInSum)
	line("presumes       an honest draw of the shards and honest enrolment: one device among %d invented peers", p.Shard-1)
	line("               is not protected by any threshold")
	return b.String()
}
