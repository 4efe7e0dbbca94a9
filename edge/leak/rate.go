package leak

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Limits of a rate: how far an update may be from the start, over the start's norm. With
// less its values are lost beside the start's in float32; with more, nothing of the first
// step's gradient is left.
const (
	leastMove = 1e-3
	mostMove  = 1
	usualMove = 1e-2
	usualRate = 1e-3 // where a rate moves nothing, or what is not finite
	mostRates = 6
)

// chooseRate keeps the rate that the job names where an update moves by as much as one
// does, and finds another where it does not. A recipe names a rate and a round's plan
// another: one that moves nothing would hide what the plan's shows.
func (p *probe) chooseRate(ctx context.Context) error {
	if !(p.LearningRate > 0 && p.LearningRate <= math.MaxFloat32) {
		p.LearningRate = usualRate
	}
	examples, err := p.madeUp("rate", 0)
	if err != nil {
		return err
	}
	start := max(norm(p.start), 1e-6)
	why := errors.New("it moves nothing")
	for range mostRates {
		delta, err := p.trains(ctx, examples, p.derive("rate", 0))
		if err != nil && !errors.Is(err, ErrNotTried) {
			return err
		}
		moves := norm(delta) / start
		switch {
		case err != nil: // it diverged
			why, p.LearningRate = err, min(usualRate, p.LearningRate*1e-3)
		case moves >= leastMove && moves <= mostMove:
			return nil
		case moves == 0:
			p.LearningRate = max(usualRate, p.LearningRate*1e3)
		default:
			p.LearningRate *= usualMove / moves
		}
		if !(p.LearningRate > 0 && p.LearningRate <= math.MaxFloat32) {
			break
		}
	}
	return fmt.Errorf("%w: no learning rate trains it: %w", ErrNotTried, why)
}

func norm(values []float32) float64 {
	square := 0.0
	for _, x := range values {
		square += float64(x) * float64(x)
	}
	return math.Sqrt(square)
}
