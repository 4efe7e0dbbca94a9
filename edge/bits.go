package edge

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Shown bounds, in bits, what a data set could have told if everybody but its device had lied. It
// counts the noise alone that the device added itself, in all jobs that had it add some.
type Shown struct {
	Data    float64 `json:"bits"`         // about all of the data
	Example float64 `json:"example_bits"` // about any one example, given all others
	// Unbounded counts rounds to which this device added no noise of its own, by its owner's consent: nothing bounds
	// what these told. Limits hold for the others alone, or one such round would end all jobs.
	Unbounded uint64 `json:"unbounded_rounds,omitempty"`
}

func (s Shown) plus(t Shown) Shown {
	return Shown{s.Data + t.Data, s.Example + t.Example, s.Unbounded + t.Unbounded}
}

func (s Shown) times(n float64) Shown { return Shown{s.Data * n, s.Example * n, s.Unbounded} }

// groupNoise is own noise v over the norm bound of one of a unit's groups: one example moves the
// vector of its group alone.
func groupNoise(v float64, groups int) float64 { return v * float64(max(1, groups)) }

// exampleBits is roundBits about one example of a unit whose examples are in groups.
func exampleBits(v float64, groups int) float64 { return roundBits(groupNoise(v, groups), 1) }

// shownBy is what one round of a job could tell.
func shownBy(j *wire.Job) Shown {
	return Shown{Data: roundBits(j.Privacy.OwnNoise, int(j.Providers)), Example: exampleBits(j.Privacy.OwnNoise, int(j.Groups))}
}

// announced is what all rounds that a job announces could tell.
func announced(j *wire.Job) Shown { return shownBy(j).times(callable(j.Rounds)) }

// ExampleBits bounds, in bits, the information about any one example in all contributions, given all the others,
// if everybody else lied. ok is false if this device added no noise; then there is no bound.
func (j *JobAccount) ExampleBits() (bits float64, ok bool) {
	if _, ok := j.Bits(); !ok {
		return 0, false
	}
	return float64(j.Contributed) * exampleBits(j.Own, j.Groups), true
}

// Shown is what all jobs of the account could have been told, whoever ran them and under whatever
// identity. Of jobs without noise of the device's own, to each of which their owner has said yes, it counts rounds.
func (a *Account) Shown() Shown {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shown("")
}

// shown leaves out one job, by its TaskID in hexadecimal; a.mu is held.
func (a *Account) shown(but string) (s Shown) {
	for task, had := range a.state.Jobs {
		if task == but || had.Contributed == 0 {
			continue
		}
		if bits, ok := had.Bits(); ok {
			one, _ := had.ExampleBits()
			s = s.plus(Shown{Data: bits, Example: one})
		} else {
			s.Unbounded += had.Contributed
		}
	}
	return s
}

// shownElsewhere is what all jobs but one could have been told.
func (a *Account) shownElsewhere(task [32]byte) Shown {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shown(hex.EncodeToString(task[:]))
}

// affordBits refuses a round after which all jobs together could have told more than the owner
// allows; a.mu is held.
func (a *Account) affordBits(j *wire.Job, p *Policy) error {
	if p.Bits == 0 && p.ExampleBits == 0 {
		return nil
	}
	found := p.bitsBeyond(a.shown("").plus(shownBy(j)), "with one more round all jobs together could have told", "")
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%w", ErrPolicy, errors.Join(found...))
}

// bitsBeyond lists the limits that what would have been shown is beyond. could says by what, cure
// what a job may do instead.
func (p *Policy) bitsBeyond(sum Shown, could, cure string) (found []error) {
	for _, c := range []struct {
		key, about string
		bits, most float64
	}{{"example_bits", " about one example", sum.Example, p.ExampleBits}, {"bits", " of this data", sum.Data, p.Bits}} {
		if c.most == 0 || c.bits <= c.most*(1+1e-9) { // that sums of equal numbers differ by
			continue
		}
		what, have := fmt.Sprintf("%s up to %.4g bits%s", could, c.bits, c.about), strconv.FormatFloat(math.Ceil(c.bits), 'g', -1, 64)
		if math.IsInf(c.bits, 1) {
			what, have = fmt.Sprintf("nothing bounds what the rounds announced could tell%s", c.about), "0"
		}
		found = append(found, &PolicyError{Key: c.key, What: what, Why: whyHonest, Have: have, Want: fmt.Sprintf("at most %.6g%s", c.most, cure)})
	}
	return found
}

// checkNoise checks what devices add themselves, and what that leaves to be told, against the
// policy. had is what this data has told other jobs.
func (p *Policy) checkNoise(j *wire.Job, had Shown) []error {
	cure := ""
	if len(p.noiseBeyond(j, had, "")) > 0 {
		cure = p.cures(j, had).String()
	}
	return p.noiseBeyond(j, had, cure)
}

func (p *Policy) noiseBeyond(j *wire.Job, had Shown, cure string) (found []error) {
	v := j.Privacy.OwnNoise // which Contribute adds, since every plan has the job's
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	if v < p.OwnNoise {
		what := fmt.Sprintf("devices add noise of %s clip norms themselves", number(v))
		if v == 0 {
			what = "the coordinator alone adds the noise, and no device can check it"
		}
		found = append(found, &PolicyError{Key: "own_noise", What: what, Why: whyHonest, Have: number(v), Want: "at least " + number(p.OwnNoise) + cure})
	}
	if kv := groupNoise(v, int(j.Groups)); kv < p.ExampleNoise {
		found = append(found, &PolicyError{Key: "example_noise", What: fmt.Sprintf("own noise of %s in %d groups hides one example as noise of %s would", number(v), max(1, j.Groups), number(kv)),
			Why: whyHonest, Have: number(kv), Want: "at least " + number(p.ExampleNoise) + cure})
	}
	could := "if everybody else lies, the rounds announced could tell"
	if had.Data > 0 {
		could = "if everybody else lies, the rounds announced could bring what all jobs were told to"
	}
	return append(found, p.bitsBeyond(had.plus(announced(j)), could, cure)...)
}

// cure is what an operator may change in a job, one of them, so that a device joins it: more own
// noise, more groups or fewer rounds. What is 0 does not do alone.
type cure struct {
	own     float64
	groups  int
	rounds  uint64
	central bool // no noise is the devices' so far
}

// cures finds what would do. Each is tried before it is recommended.
func (p *Policy) cures(j *wire.Job, had Shown) (c cure) {
	c.central = j.Privacy.Noise == wire.NoiseCentral
	left := func(most, had float64) float64 {
		if most == 0 {
			return math.Inf(1)
		}
		return max(0, most-had)
	}
	data, example := left(p.Bits, had.Data), left(p.ExampleBits, had.Example)
	v, k, units := j.Privacy.OwnNoise, float64(max(1, j.Groups)), float64(max(1, j.Providers))
	noise := func(bits float64) float64 { return math.Sqrt(callable(j.Rounds) / (2 * math.Ln2 * bits)) }
	try := func(change func(*wire.Job)) bool {
		trial := *j
		change(&trial)
		return len(p.noiseBeyond(&trial, had, "")) == 0
	}
	own := upward(max(p.OwnNoise, p.ExampleNoise/k, noise(data)*units, noise(example)/k))
	if try(func(j *wire.Job) { j.Privacy.OwnNoise = own }) {
		c.own = own
	}
	groups := math.Ceil(max(p.ExampleNoise, noise(example)) / v * (1 - 1e-12))
	if most := min(wire.MaxParts, p.Steps/max(1, int(j.Steps)+int(j.Scored))); v > 0 && groups <= float64(most) {
		if try(func(j *wire.Job) { j.Groups = uint32(groups) }) {
			c.groups = int(groups)
		}
	}
	a := shownBy(j)
	if most := min(data/a.Data, example/a.Example, 1<<53) * (1 + 1e-12); most >= 6 {
		n := uint64(most)
		rounds := min(n-5, n/5*4+min(3, n%5)) // the most that come to n with their spare ones
		if try(func(j *wire.Job) { j.Rounds = rounds }) {
			c.rounds = rounds
		}
	}
	return c
}

// upward rounds a positive number up to three digits.
func upward(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return x
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	up, err := strconv.ParseFloat(strconv.FormatFloat(math.Ceil(x/unit*(1-1e-12))*unit, 'g', 6, 64), 64)
	if err != nil {
		return x
	}
	return up
}

func (c cure) String() string {
	var parts []string
	if c.own > 0 {
		set := fmt.Sprintf("privacy.own_noise: %.6g", c.own)
		if c.central {
			set = "privacy.noise: devices with " + set
		}
		parts = append(parts, set)
	}
	if c.groups > 0 {
		parts = append(parts, fmt.Sprintf("privacy.groups: %d", c.groups))
	}
	if c.rounds > 0 {
		parts = append(parts, fmt.Sprintf("rounds: %d", c.rounds))
	}
	if len(parts) == 0 {
		return " (other jobs have had it, and nothing in this one would do)"
	}
	return " (in the job " + strings.Join(parts, ", or ") + " would do)"
}

// mostShown tells an owner, before anything is sent, what all rounds of a job could tell about one
// example. It counts the rounds that a coordinator may call lost. With groups it holds given how examples were dealt: one
// that others are near-duplicates of decides where these are, too. A character of text that a good
// model of the language predicts has about one bit.
func (p *Policy) mostShown(j *wire.Job, had Shown) string {
	if !(j.Privacy.OwnNoise > 0) {
		return "; nothing but its coordinator's honesty bounds what can leave this device about an example"
	}
	bits := announced(j).Example
	text := fmt.Sprintf("; in all rounds of this job at most %.3g bits about any one example can leave this device, even if everybody else lies, given which of them are alike; that is about %.0f characters",
		bits, math.Ceil(bits))
	if had.Example > 0 {
		text += fmt.Sprintf("; other jobs could have been told %.3g bits about one", had.Example)
	}
	if p.ExampleBits > 0 {
		text += fmt.Sprintf(", and your limit for all jobs is %.3g", p.ExampleBits)
	}
	if had.Unbounded > 0 {
		text += fmt.Sprintf("; nothing bounds what %d rounds of other jobs told, which had no noise of this device's own", had.Unbounded)
	}
	return text
}
