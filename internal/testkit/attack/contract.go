package attack

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"math/bits"
)

// Places in the arrays of section 6 that an attack looks at or changes.
const (
	JobName, JobBase, JobRankMin, JobRankMax        = 1, 4, 5, 6
	JobBatch, JobOptimizer, JobRounds, JobUplink    = 17, 18, 21, 22
	JobSequence                                     = 16
	JobShardMax, JobShardFloor, JobCorrupt, JobBits = 25, 26, 27, 28
	JobSemiHonest, JobHybrid, JobIdentified, JobKey = 29, 30, 31, 32
	JobPrivacy, JobDeadlines, JobRecipe             = 33, 34, 35
	JobProviders, JobProviderRate, JobLog           = 23, 24, 36
	JobPublished, JobDealt                          = 37, 38
	JobHeldOut, JobScored, JobObjectives, JobDual   = 39, 40, 41, 42
	JobGroups                                       = 43
	JobSteps, JobClip, JobBounds                    = 44, 45, 46 // the last

	PlanTask, PlanRound, PlanRank, PlanValues, PlanClip = 0, 1, 3, 4, 8
	PlanVersion, PlanSeed, PlanSlice, PlanRotation      = 2, 5, 6, 7
	PlanCounts, PlanCount, PlanOwnNoise, PlanHonest     = 9, 10, 11, 12
	PlanSteps, PlanRate, PlanPrograms, PlanHead         = 13, 14, 15, 16
	PlanGroups                                          = 17
	PlanFigures, PlanFigure                             = 18, 19 // the last
)

// contract is what both sides derive from job and plan.
type contract struct {
	dim, width, maxSymbol           int
	shardMax, shardMin, ppm, breach int
	semiHonest, hybrid, identified  bool
	logged, dealt                   bool
	groups                          int
	task                            []byte
	log, head                       []byte // the key of the log of enrolled keys, and the head that the plan binds
	authority                       []byte
	round                           uint64
	plan                            [32]byte // P
}

// schemes are the largest symbols, and the widths of those that have a fixed one.
var schemes = map[string][2]int{"nf4": {12, 0}, "int5": {15, 0}, "int4": {7, 0}, "int3": {3, 0}, "tern": {1, 0},
	"fixed16": {255, 16}, "fixed32": {1<<20 - 1, 32}}

// coordinates is D: the length of the rotated vector.
func coordinates(values int) int {
	best, pad := 0, 0
	for r := 4096; r >= 64; r /= 2 {
		rows := (values + r - 1) / r
		if rows > 4096 {
			break
		}
		d := rows * r
		if (d-values)*200 <= values {
			return d
		}
		if best == 0 || d-values < pad {
			best, pad = d, d-values
		}
	}
	return best
}

func newContract(job, plan []byte) (c contract, err error) {
	j, err := DecodeArray(job, JobGroups+1)
	if err != nil {
		return c, fmt.Errorf("job: %w", err)
	}
	p, err := DecodeArray(plan, PlanFigure+1)
	if err != nil {
		return c, fmt.Errorf("plan: %w", err)
	}
	at := Frame{Body: j}
	of := Frame{Body: p}
	scheme, ok := schemes[at.Text(JobUplink)]
	if !ok {
		return c, fmt.Errorf("attack: scheme %q", at.Text(JobUplink))
	}
	units := max(1, int(at.Uint(JobProviders))) * max(1, int(at.Uint(JobGroups)))
	c.dim = coordinates(int(of.Uint(PlanValues))) + int(of.Uint(PlanCounts)) + 4*int(of.Uint(PlanFigures))
	c.maxSymbol, c.shardMax, c.shardMin = scheme[0]*units, int(at.Uint(JobShardMax)), int(at.Uint(JobShardFloor))
	if c.width = scheme[1]; c.width == 0 {
		c.width = bits.Len(uint(2 * c.shardMax * c.maxSymbol))
	}
	c.ppm, c.breach = int(at.Uint(JobCorrupt)), int(at.Uint(JobBits))
	c.semiHonest, _ = j[JobSemiHonest].(bool)
	c.hybrid, _ = j[JobHybrid].(bool)
	c.identified, _ = j[JobIdentified].(bool)
	c.log, c.head = at.Bytes(JobLog), of.Bytes(PlanHead)
	c.logged = !bytes.Equal(c.log, make([]byte, 32))
	c.dealt, _ = j[JobDealt].(bool)
	c.groups, c.task = int(of.Uint(PlanGroups)), taskOf(job)
	c.authority = at.Bytes(JobKey)
	c.round = of.Uint(PlanRound)
	h := sha256.New()
	h.Write([]byte("starling/secagg/1 plan"))
	field := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	field([]byte(hex.EncodeToString(c.task)))
	h.Write(binary.BigEndian.AppendUint64(nil, c.round))
	field(c.encode())
	field(plan)
	h.Sum(c.plan[:0])
	return c, nil
}

func (c contract) encode() []byte {
	flags, suite := 0, 1
	if c.semiHonest {
		flags |= 1
	}
	if c.identified {
		flags |= 2
	}
	if c.logged {
		flags |= 4
	}
	if c.dealt {
		flags |= 8
	}
	if c.hybrid {
		suite = 2
	}
	return Encode(Array{c.dim, c.width, c.maxSymbol, c.shardMax, c.shardMin, c.ppm, c.breach, flags, suite, c.authority})
}

// threshold is t of a shard of n, by exact fractions (section 7).
func (c contract) threshold(n int) int {
	t := n/2 + 1
	if c.semiHonest {
		t = max(2, (n+2)/3)
	}
	p := big.NewRat(int64(c.ppm), 1_000_000)
	q := new(big.Rat).Sub(big.NewRat(1, 1), p)
	limit := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), uint(c.breach)))
	for ; t <= n; t++ {
		need := 2*t - n
		if c.semiHonest {
			need = t
		}
		tail := new(big.Rat)
		for k := max(need, 0); k <= n; k++ {
			term := new(big.Rat).SetInt(new(big.Int).Binomial(int64(n), int64(k)))
			for range k {
				term.Mul(term, p)
			}
			for range n - k {
				term.Mul(term, q)
			}
			tail.Add(tail, term)
		}
		if tail.Cmp(limit) <= 0 {
			return t
		}
	}
	return n + 1
}
