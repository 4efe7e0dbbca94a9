package participation

import (
	"context"
	"fmt"
	"io"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/card"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// cards holds a job's privacy card against the job's announcement before the device enrols, shows it in a line, and
// keeps it. A coordinator that has none, as older ones and those of jobs that are not private, is joined without.
func (m *Participant) cards(ctx context.Context, p *Part, told io.Writer) func([32]byte, []byte) error {
	var last [32]byte
	return func(task [32]byte, announced []byte) error {
		if task == last {
			return nil
		}
		// Of what is wrong with the coordinator joining says more than a question for its card.
		file, _ := edge.AskCard(ctx, edge.Config{Token: p.Token, Policy: p.Policy, AllowPlain: m.Plain})
		if file == nil {
			return nil
		}
		j, err := wire.ParseJob(announced)
		if err != nil {
			return err
		}
		c, err := card.Open(file, card.Key(j))
		if err == nil {
			err = c.Holds(j, task)
		}
		if err != nil {
			return fmt.Errorf("%w: the coordinator says one thing to its devices and another to their owners: do not join, and ask whoever runs it", err)
		}
		path, err := m.Kept.KeepCard(task, file)
		if err != nil {
			return err
		}
		last = task
		_, _ = fmt.Fprintf(told, "privacy card: %s; kept in %s\n", edge.Escape(c.Line(), false), path) // a line for the owner
		return nil
	}
}
