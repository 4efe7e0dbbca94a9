package edge

import (
	"fmt"
	"math"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// groupNoise is own noise v over the norm bound of one of a unit's groups: one example moves the
// vector of its group alone.
func groupNoise(v float64, groups int) float64 { return v * float64(max(1, groups)) }

// exampleBits is roundBits about one example of a unit whose examples are in groups.
func exampleBits(v float64, groups int) float64 { return roundBits(groupNoise(v, groups), 1) }

// ExampleBits bounds what was contributed could tell about any one example, in bits, given all the
// others, if everybody else lied. ok is false if this device added no noise; then there is no bound.
func (j *JobAccount) ExampleBits() (bits float64, ok bool) {
	if _, ok := j.Bits(); !ok {
		return 0, false
	}
	return float64(j.Contributed) * exampleBits(j.Own, j.Groups), true
}

// mostShown tells an owner, before anything is sent, what all rounds of a job could tell about one
// example. It counts the rounds that a coordinator may call lost. With groups it holds given how examples were dealt: one
// that others are near-duplicates of decides where these are, too. A character of text that a good
// model of the language predicts has about one bit.
func mostShown(j *wire.Job) string {
	if !(j.Privacy.OwnNoise > 0) {
		return "; nothing but its coordinator's honesty bounds what can leave this device about an example"
	}
	bits := announcedBits(j.Rounds, groupNoise(j.Privacy.OwnNoise, int(j.Groups)), 1)
	return fmt.Sprintf("; in all rounds of this job at most %.3g bits about any one example can leave this device, whoever lies, given which of them are alike; that is about %.0f characters",
		bits, math.Ceil(bits))
}
