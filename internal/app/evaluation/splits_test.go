package evaluation

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// ending is a context that ends after it was asked so often.
type ending struct {
	context.Context
	asked, most int
}

func (c *ending) Err() error {
	if c.asked++; c.asked > c.most {
		return context.Canceled
	}
	return nil
}

// TestScoreThatFailsIsNoResult: anyone who emits a report that is not nil emits no half of one.
func TestScoreThatFailsIsNoResult(t *testing.T) {
	b, err := base.Documents()
	if err != nil {
		t.Fatal(err)
	}
	l, err := model.NewLayout(b.Config, model.Method{RMax: 1, Alpha: 1, Kind: model.MethodLoRA, Task: model.TaskAnswer, Answer: 4}, 0)
	if err != nil {
		t.Fatal(err)
	}
	set, err := dataset.Documents(dataset.DocumentConfig{Seed: 2, Split: "test", Clients: 1, PerClient: 2, Providers: 1})
	if err != nil {
		t.Fatal(err)
	}
	q, err := NewQuestions(b, l, 96, set, set)
	if err != nil {
		t.Fatal(err)
	}
	released := monitor.Result{Adapter: model.NewAdapter(l, 1), BestRank: 1}
	whole := &ending{Context: t.Context(), most: 1 << 20}
	if r, err := q.Report(whole, outcome.Report{}, l, released, false); err != nil || r == nil {
		t.Fatalf("a job that ended well: %v, %v", r, err)
	}
	if whole.asked < 2 {
		t.Fatalf("two scores asked whether to go on %d times", whole.asked)
	}
	last := &ending{Context: t.Context(), most: whole.asked - 1}
	if r, err := q.Report(last, outcome.Report{}, l, released, false); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("reported %v, %v", r, err)
	}
}
