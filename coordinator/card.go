package coordinator

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/starling-fl/starling/internal/protocol/card"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
)

// ErrNoCard is a job that promises nothing and so has no privacy card.
var ErrNoCard = errors.New("coordinator: the job is not private and has no privacy card")

// Card is the job's privacy card in JSON, at most 64 KiB, signed by the announced key of its log or, without one, of its
// rosters. Its numbers are About's. epsilon and delta bound what all jobs of this coordinator cost together; 0: nothing
// does. The error is ErrNoCard if the job is not private.
func (c *Coordinator) Card(about About, epsilon, delta float64) ([]byte, error) {
	if !c.private() {
		return nil, ErrNoCard
	}
	announced, err := wire.ParseJob(c.jobBytes)
	if err != nil {
		return nil, err
	}
	key := c.keys.signer
	if key == nil {
		key = c.authority
	}
	return card.Sign(card.New(announced, c.task, c.t.Job.About, about.Guarantees, card.Fleet{Epsilon: epsilon, Delta: delta}), key)
}

// PlannedCard is the card in JSON that a coordinator of the job over the base would sign, but for its id.
func PlannedCard(j Job, base *model.Base) ([]byte, error) {
	if j.Privacy.None {
		return nil, ErrNoCard
	}
	t, w, err := planned(j, base)
	if err != nil {
		return nil, err
	}
	numbers, err := t.Promise()
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(card.New(w, [32]byte{}, j.About, numbers, card.Fleet{}))
	if err != nil {
		return nil, fmt.Errorf("coordinator: %w", err)
	}
	return b, nil
}
