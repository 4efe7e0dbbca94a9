package edge

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
)

// A Trial is a round of an announced job as this device would take part in it, with as few steps
// and as few examples as its owner lets an update average.
type Trial struct {
	training.Spec // without a rate, which a plan says

	Name     string
	Labels   []string
	Recipe   []byte // of the job's programs: see Remaker
	Base     *model.Base
	Layout   *model.Layout
	Rank     int // the greatest
	Sequence int
	Examples int // distinct ones that an update averages
	Uplink   string
	Own      float64 // noise of the device's own, over the clip norm
	Rounds   uint64  // that the job announces
	Units    int     // most units of privacy that a device holds; 0: one
	Groups   int     // that a device's examples are in; 0: one

	// Project takes the values of a start at a rank back into the bounds that the device checks; nil: it checks none.
	Project func(l *model.Layout, rank int, start []float32)

	Work       float64 // the owner's limits of a round
	MostMemory int     // MiB
}

// Bits bounds, in bits, what all rounds announced could tell of the device's data, lost rounds
// included, if all others lie; infinite without own noise.
func (t Trial) Bits() float64 { return callable(t.Rounds) * roundBits(t.Own, t.Units) }

// Called is how many rounds a device may be asked to answer: those announced, and those that a coordinator may call lost.
func (t Trial) Called() float64 { return callable(t.Rounds) }

// A Leak is the result of trying what one update reveals.
type Leak struct {
	Tokens   float64 `json:"tokens"`   // greatest share that an attack found, beyond what guessing does
	Examples int     `json:"examples"` // of the update
	Line     string  `json:"line"`     // for the device's owner
}

// A Leaker tries what one update reveals, on made-up examples. It uses nothing of this device's data, so its
// outcome tells nothing about that data. Package leak has one.
type Leaker func(ctx context.Context, t Trial) (Leak, error)

// whyLeak is the reason of a limit on it.
const whyLeak = "If this coordinator invents the other devices, one update of yours is all it needs to read so much of the texts behind it"

// checkLeak tries, once a job, what one update of the job reveals, and checks the result against
// the policy. If it cannot be tried, the owner must accept that as if it revealed everything:
// anyone who makes base and job can make the trial fail.
func (c *client) checkLeak(ctx context.Context, j *job, base *model.Base) error {
	if host == "v8" || c.cfg.Leaks == nil { // a page has no compiler
		return nil
	}
	t := trialOf(j, base, c.cfg.Policy)
	found, known := c.cfg.Account.leak(j.task, t.Examples)
	if !known {
		c.events.send(Event{State: Preparing, Text: "trying what one update would show, on made-up examples"})
		var err error
		found, err = c.cfg.Leaks(ctx, t)
		if ctx.Err() != nil {
			return ctx.Err() //nolint:wrapcheck // of the device, not of the trial
		}
		if err != nil {
			found = Leak{Tokens: 1, Line: "what one update of yours shows could not be tried: " + Escape(err.Error(), false)}
		} else {
			found.Examples, found.Line = t.Examples, Escape(found.Line, false)
			if err := c.cfg.Account.tried(j.task, found); err != nil {
				return err
			}
		}
	}
	c.events.send(Event{State: Preparing, Text: found.Line})
	return c.cfg.Policy.checkLeak(found)
}

// checkLeak checks what was found against the policy.
func (p *Policy) checkLeak(found Leak) error {
	if found.Tokens <= p.Leak {
		return nil
	}
	have := math.Ceil(found.Tokens*100) / 100
	return fmt.Errorf("%w:\n%w", ErrPolicy, &PolicyError{Key: "leak", What: found.Line, Why: whyLeak,
		Have: strconv.FormatFloat(min(1, have), 'g', -1, 64), Want: fmt.Sprintf("at most %v of the tokens", p.Leak)})
}

// trialOf is a round of the job that shows as much as the policy lets it.
func trialOf(j *job, base *model.Base, p *Policy) Trial {
	rank := int(j.RankMax)
	if j.HeadOnly {
		rank = 0
	}
	spec := j.Announced.Spec(1, 0)
	spec.Batch = max(1, spec.Batch)
	spec.Steps = max(1, min(p.Steps, (p.Examples+spec.Batch-1)/spec.Batch))
	return Trial{
		Spec: spec,
		Name: j.Name, Labels: j.Labels, Recipe: j.Recipe, Base: base, Layout: j.layout, Rank: rank, Sequence: int(j.Sequence),
		Examples: p.Examples, Uplink: j.Uplink, Own: j.Privacy.OwnNoise, Rounds: j.Rounds, Units: int(j.Providers), Groups: int(j.Groups),
		Project: p.projects(j.Bounds), Work: p.Work, MostMemory: p.Memory,
	}
}

// projects is Trial's Project, by announced bounds.
func (p *Policy) projects(b wire.Bounds) func(*model.Layout, int, []float32) {
	if math.IsInf(p.Start, 1) {
		return nil
	}
	return func(l *model.Layout, rank int, start []float32) {
		contract.ProjectStart(l, rank, start, contract.Bounds(b))
	}
}

// leak returns the result of an earlier trial of the job with as few examples.
func (a *Account) leak(task [32]byte, examples int) (Leak, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.state.Leaks[hex.EncodeToString(task[:])]
	return found, ok && found.Examples == examples
}

// mergeLeaks adds what another account has tried; a.mu and other's are held.
func (a *Account) mergeLeaks(other *Account) {
	for task, found := range other.state.Leaks {
		if _, known := a.state.Leaks[task]; !known {
			a.noteLeak(task, found)
		}
	}
}

// noteLeak keeps a trial's result; a.mu is held.
func (a *Account) noteLeak(task string, found Leak) {
	if a.state.Leaks == nil {
		a.state.Leaks = map[string]Leak{}
	}
	a.state.Leaks[task] = found
}

// tried notes what a trial found.
func (a *Account) tried(task [32]byte, found Leak) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noteLeak(hex.EncodeToString(task[:]), found)
	return a.keep()
}
