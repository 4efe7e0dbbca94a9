package leak

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
)

// Settings describe a round as a device would take part in it.
type Settings struct {
	Base     *model.Base
	Layout   *model.Layout
	Rank     int
	Sequence int // tokens of an example

	// Spec is the training: a learning rate that moves too little or too much is replaced.
	training.Spec
	Examples int // distinct ones that an update averages; 0: as many as its steps take

	Uplink string  // masked scheme, of package quant
	Own    float64 // noise that the device adds itself, over the clip norm
	Rounds uint64  // that the job announces; 0: not known
	Bits   float64 // bound on what they all could tell if all others lie; infinite: none
	Called float64 // of rounds, those that may be called lost included
	Groups int     // that a device's examples are in; 0: one

	// Project takes the values of a start at a rank back into the bounds that the device checks; nil: it checks none.
	Project func(l *model.Layout, rank int, start []float32)

	Program    []byte       // the training step, made again
	Trainer    edge.Trainer // which runs it
	Work       float64      // most units that a round may take; 0: no limit
	MostMemory int          // most MiB that the program may take; 0: no limit
}

// Options limit how much is tried.
type Options struct {
	Trials int           // updates that are tried; 0 is 8
	Lasts  time.Duration // after so long no further trial begins, but the first two; 0 is 20 s. A quarter is the search's
	Starts int           // most starts that are searched for one that shows more; 0 is 400, -1 none
	// Data are the owner's own examples, on which a base cannot behave otherwise than on
	// the owner's examples. Nil: made-up ones, which the coordinator may have foreseen.
	Data *dataset.Set
	// Tiny are the same settings on TinyBase with TinySequence tokens, for gradient matching
	// where it takes too long on the job's own base; nil: it is left out there.
	Tiny func(ctx context.Context) (Settings, error)
	// Tries is the number of trainings of gradient matching for each update; 0: as many as there is time for.
	Tries int
	Seed  []byte // everything random follows from it; nil: a random one
	// Progress is told of trials done; may be nil.
	Progress func(done, of int)
}

// mostUnknown is the share of tokens that a base may read as unknown: of texts that it
// cannot read it shows nothing, whatever it shows of others.
const mostUnknown = 0.5

// The defaults.
const (
	DefaultTrials = 8
	DefaultLasts  = 20 * time.Second
	DefaultStarts = 400
)

// ErrNotTried is a round that cannot be tried: there are no texts for its task, or training fails.
var ErrNotTried = errors.New("leak: nothing could be tried")

// Check tries to read one update at these settings.
func Check(ctx context.Context, s Settings, o Options) (*Report, error) {
	if o.Trials < 0 || o.Lasts < 0 {
		return nil, fmt.Errorf("leak: %d trials in %v: want 1 or more, in more than 0", o.Trials, o.Lasts)
	}
	if o.Trials == 0 {
		o.Trials = DefaultTrials
	}
	if o.Lasts == 0 {
		o.Lasts = DefaultLasts
	}
	if o.Starts == 0 {
		o.Starts = DefaultStarts
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	if o.Seed == nil {
		o.Seed = make([]byte, 32)
		if _, err := rand.Read(o.Seed); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	p, err := newProbe(s, o)
	if err != nil {
		return nil, err
	}
	if err := p.chooseRate(ctx); err != nil {
		return nil, err
	}
	attacks := p.attacks()
	for i := range attacks {
		if err := attacks[i].prepare(ctx); err != nil {
			return nil, err
		}
	}
	p.read, p.lacking = 0, 0 // of the trials' texts, and not of what attackers make up
	trials, searches := 0, o.Lasts/4
	for trials < o.Trials && (trials < 2 || time.Since(began) < o.Lasts-searches) {
		if err := p.try(ctx, trials, attacks); err != nil {
			return nil, err
		}
		if share := float64(p.lacking) / float64(max(1, p.read)); share > mostUnknown {
			return nil, fmt.Errorf("%w: the base's vocabulary lacks %.0f %% of the words of these texts", ErrNotTried, 100*share)
		}
		trials++
		o.Progress(trials, o.Trials)
	}
	r := &Report{Rounds: s.Rounds, Bits: bounded(s.Bits), Examples: p.examples, Values: s.Layout.Size(s.Rank), OwnNoise: s.Own, Uplink: s.Uplink, Own: o.Data != nil, Trials: trials}
	for i := range attacks {
		r.Attacks = append(r.Attacks, attacks[i].result())
		if attacks[i].slow && o.Tiny != nil {
			tiny, err := onTiny(ctx, o, o.Lasts-searches-time.Since(began))
			if err != nil {
				return nil, err
			}
			r.Attacks = append(r.Attacks, *tiny)
		}
	}
	if o.Starts > 0 {
		if r.Aimed, err = p.tryAimed(ctx, searches); err != nil {
			return nil, err
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}
