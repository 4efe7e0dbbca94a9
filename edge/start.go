package edge

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// errBounds is a start that breaks the coordinator's own word.
var errBounds = errors.New("the round's start is beyond the bounds that the job announced")

// whyStart is the reason of a limit on what a round begins with.
const whyStart = "What a round begins with decides what of your data its update holds: a start made for it, with values far beyond any training's, can make the update hold one text alone"

// checkBounds checks the announced bounds of what rounds begin with against the policy.
func (p *Policy) checkBounds(j *wire.Job) []error {
	have, published := contract.Bounds(j.Bounds), contract.StartBounds()
	usual := contract.PartsOf(&published)
	most, widest := 0.0, ""
	for i, b := range contract.PartsOf(&have) {
		if times := *b.Most / *usual[i].Most; times > most {
			most, widest = times, fmt.Sprintf("bounds.%s is %.6g, %.4g times the published %.6g", b.Key, *b.Most, times, *usual[i].Most)
		}
	}
	if most <= p.Start {
		return nil
	}
	return []error{&PolicyError{Key: "start", What: "the job's rounds may begin with larger values than any training reaches: " + widest, Why: whyStart,
		Have: strconv.FormatFloat(most, 'g', -1, 64), Want: fmt.Sprintf("at most %.6g times the published bounds", p.Start)}}
}

// checkPlanned checks what the job announces of its rounds' plans against the policy: a job whose
// rounds would all be refused is not joined. What it does not announce the plan's check sees.
func (p *Policy) checkPlanned(j *wire.Job) []error {
	if j.Steps == 0 || j.ClipNorm == 0 {
		return nil
	}
	of := *p
	of.Groups = 0 // the round's own
	return of.planBeyond(j, &wire.Plan{Steps: j.Steps, ClipNorm: j.ClipNorm})
}

// checkStart refuses what a round begins with where it is beyond the job's own bounds, which is for
// nobody to accept: the coordinator broke its word. It follows from the start alone, so that a
// refusal tells nothing of data.
func (p *Policy) checkStart(j *job, rank int, start []float32) error {
	if math.IsInf(p.Start, 1) {
		return nil
	}
	if err := contract.CheckStart(j.layout, rank, start, contract.Bounds(j.Bounds)); err != nil {
		return fmt.Errorf("%w: %w", errBounds, err)
	}
	return nil
}

// startOf names what a plan's round begins with: the digest of its values, which is checked when they come, or the seed of a
// fresh adapter.
func startOf(p *wire.Plan) string {
	if _, fresh := p.AdapterSeed(); fresh {
		sum := sha256.Sum256(p.Seed)
		return "seed:" + hex.EncodeToString(sum[:16])
	}
	return hex.EncodeToString(p.Slice.Digest[:])
}
