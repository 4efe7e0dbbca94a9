package device

import (
	"time"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/usage"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
)

// checkFleet checks the flags of --fleet against each other.
func (f *joinFlags) checkFleet(args []string) error {
	switch given := f.policy.flags.Changed; {
	case !f.fleet && (given("tasks") || given("pool") || given("look")):
		return usage.Errorf("--tasks, --pool and --look are for --fleet")
	case !f.fleet:
		return nil
	case len(args) != 1:
		return usage.Errorf("--fleet takes one token: it finds the jobs itself")
	case f.askAgain:
		return usage.Errorf("--fleet asks nothing: leave out --ask-again")
	case f.look < time.Second || f.look > 24*time.Hour:
		return usage.Errorf("--look is %v, want a second to a day", f.look)
	}
	for _, name := range f.tasks {
		if kind, err := model.ParseTask(name); err != nil || kind.String() != name {
			return usage.Errorf("--tasks: %q, want some of %q", name, model.TaskNames())
		}
	}
	return nil
}

// foundFor is what jobs may learn of a file.
func (f *joinFlags) foundFor(set *dataset.Set) *edge.Discovery {
	if len(f.tasks) == 0 {
		return &edge.Discovery{Tasks: []string{task.For(set.Form()).String()}}
	}
	return &edge.Discovery{Tasks: f.tasks}
}
