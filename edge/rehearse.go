package edge

import (
	"errors"
	"fmt"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
)

// Rehearse lists the limits of a policy that an announced job over a base is beyond: those for which
// a device with that policy would not join, or would refuse the first round. An operator learns by
// it, before there are devices, what their owners would be asked. The error is of a job that no
// device can read.
func Rehearse(announced []byte, base *model.Base, p *Policy) ([]PolicyError, error) {
	j, err := wire.ParseJob(announced)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJob, err)
	}
	own := &job{Job: *j}
	if own.layout, err = layoutOf(j, base); err != nil {
		return nil, err
	}
	shape := p.checkShape(j, own.layout)
	if shape != nil && !errors.Is(shape, ErrPolicy) {
		return nil, shape
	}
	found := PolicyErrors(errors.Join(p.checkJob(j, Shown{}), (&client{cfg: Config{Policy: p}}).checkBase(own), shape))
	if !j.Privacy.Private {
		found = append(found, PolicyErrors(ErrNotPrivate)...)
	}
	return found, nil
}

// checkShape checks what a job's layout says against the policy: how many values of which tensors are trained, and the
// memory of a step's examples.
func (p *Policy) checkShape(j *wire.Job, l *model.Layout) error {
	columns, err := task.Columns(l, int(j.Sequence))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJob, err)
	}
	most := int(j.RankMax)
	if j.HeadOnly {
		most = 0
	}
	return errors.Join(p.checkValues(l.Size(most)), p.checkTensors(l, most), p.checkBatch(columns, int(j.Batch)))
}
