package coordinator

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// measuring is the evaluation that runs beside the rounds; owned by the engine.
// If it is slower than the rounds, versions in between are skipped.
type measuring struct {
	busy bool
	next *measurement // the latest version that waits
}

type measurement struct {
	version uint64
	adapter *model.Adapter
	ranks   []int
}

// evaluatedEvent is the end of an evaluation.
type evaluatedEvent struct {
	m        *measurement
	accuracy []metric.RankAccuracy
	err      error
}

func (evaluatedEvent) engineEvent() {}

// measure asks for the accuracy of the present adapter on public validation data,
// without waiting for it. The last round's adapter is left to finalEvaluation.
func (c *Coordinator) measure(ranks ...int) {
	if c.cfg.Evaluator == nil || c.core.Version() >= uint64(c.t.Job.Rounds) {
		return
	}
	m := &measurement{c.core.Version(), c.core.Adapter(), ranks}
	if c.measuring.busy {
		c.measuring.next = m
		return
	}
	c.startMeasuring(m)
}

func (c *Coordinator) startMeasuring(m *measurement) {
	c.measuring.busy = true
	c.evaluations.Go(func() {
		live := c.cfg.Live
		if live == nil {
			live = c.cfg.Evaluator
		}
		accuracy, err := evaluate(c.evalCtx, live, m.adapter, m.ranks)
		c.post(c.evalCtx, evaluatedEvent{m, accuracy, err})
	})
}

// evaluate calls an evaluator and checks what it says.
func evaluate(ctx context.Context, e metric.Evaluator, a *model.Adapter, ranks []int) ([]metric.RankAccuracy, error) {
	figures, err := e.Evaluate(ctx, a, ranks)
	if err != nil {
		return nil, fmt.Errorf("coordinator: evaluation: %w", err)
	}
	if len(figures) != len(ranks) {
		return nil, fmt.Errorf("coordinator: evaluation of %d ranks gave %d figures", len(ranks), len(figures))
	}
	accuracy := make([]metric.RankAccuracy, len(ranks))
	for i, s := range figures {
		if math.IsNaN(s.Loss) || math.IsInf(s.Loss, 0) || s.Loss < 0 { // a diverged adapter's: no figure
			s.Loss = 0
		}
		accuracy[i] = metric.RankAccuracy{Rank: ranks[i], Accuracy: s.Accuracy, Loss: s.Loss, Of: max(0, s.Of)}
	}
	return accuracy, nil
}

// evaluated records the figures of a version.
func (c *Coordinator) evaluated(ev evaluatedEvent) {
	c.measuring.busy = false
	if ev.err != nil {
		c.broken = ev.err
		return
	}
	c.status.Validation, c.status.ValidationVersion = ev.accuracy, int(ev.m.version)
	c.monitor.Measure(int(ev.m.version), ev.accuracy)
	c.publish()
	if next := c.measuring.next; next != nil {
		c.measuring.next = nil
		c.startMeasuring(next)
	}
}

// finalEvaluation measures every rank of the released adapter and chooses the
// best: on validation data, which a test split is not; without any by what the fleet said.
func (c *Coordinator) finalEvaluation(ctx context.Context) error {
	if c.cfg.Evaluator == nil {
		var accuracy []metric.RankAccuracy
		if c.total.BestRank, accuracy = metric.BestOf(c.monitor.Fleet(), c.t.Job.Rounds); c.total.BestRank == 0 && !c.exporting.due {
			return nil
		}
		return c.exportLast(ctx, accuracy)
	}
	c.status.State = monitor.StateMeasuring
	c.publish()
	c.measuring.next = nil
	for c.measuring.busy {
		if err := c.pump(ctx, time.Time{}); err != nil {
			return err
		}
	}
	accuracy, err := evaluate(ctx, c.cfg.Evaluator, c.core.Adapter(), c.t.Ranks())
	if err != nil {
		return err
	}
	c.status.Validation, c.status.ValidationVersion = accuracy, int(c.core.Version())
	c.monitor.Measure(int(c.core.Version()), accuracy)
	best := accuracy[0]
	for _, v := range accuracy {
		if v.Accuracy > best.Accuracy {
			best = v
		}
	}
	c.total.BestRank = best.Rank
	return c.exportLast(ctx, accuracy)
}
