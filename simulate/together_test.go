package simulate_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/simulate"
)

// cohort trains its tasks one by one and says how many it had.
type cohort struct {
	trainer.Trainer
	size int
	mu   sync.Mutex
	had  map[int]int // calls by number of tasks; by mu
	fail bool        // every second task
	more int         // answers beyond the tasks
}

func (c *cohort) Together() int { return c.size }

func (c *cohort) TrainAll(ctx context.Context, tasks []trainer.Task) []trainer.Trained {
	c.mu.Lock()
	c.had[len(tasks)]++
	c.mu.Unlock()
	out := make([]trainer.Trained, len(tasks))
	for i, t := range tasks {
		if out[i].Delta, out[i].Err = c.Train(ctx, t); c.fail && i%2 == 1 {
			out[i] = trainer.Trained{Err: errors.New("made up")}
		}
	}
	if c.more < 0 {
		return out[:len(out)+c.more]
	}
	return append(out, make([]trainer.Trained, c.more)...)
}

// Clients that train together come to what they come to alone, in groups that follow
// from their places: anyone who has no example, one unit or several.
func TestTogether(t *testing.T) {
	for name, providers := range map[string]int{"clients": 0, "providers": 3} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t, 23, true)
			cfg.Job.Rounds = 2
			cfg.Job.Providers.Max = providers
			if providers > 0 {
				each := cfg.Population.(simulate.Each)
				for i, s := range each {
					for k := range s.Examples {
						s.Examples[k].Provider = string(rune('a' + k%(1+i%3)))
					}
				}
			}
			want := digest(t, play(t, cfg).Adapter)
			var first map[int]int
			for _, workers := range []int{1, 3} {
				c := &cohort{Trainer: edge.NewProgramTrainer(2), size: 4, had: map[int]int{}}
				cfg.Workers, cfg.Trainer = workers, c
				if digest(t, play(t, cfg).Adapter) != want {
					t.Errorf("%d workers: another adapter", workers)
				}
				ok(t, c.Close())
				if first == nil {
					first = c.had
				}
				if !reflect.DeepEqual(c.had, first) || c.had[4] == 0 && c.had[3] == 0 {
					t.Errorf("%d workers: groups %v, with one %v", workers, c.had, first)
				}
			}
		})
	}
}

// A trainer that answers for fewer or more than it was asked ends the run: what it
// answered belongs to nobody.
func TestTogetherCounts(t *testing.T) {
	for _, more := range []int{-1, 1} {
		cfg := config(t, 8, false)
		c := &cohort{Trainer: edge.NewProgramTrainer(1), size: 4, had: map[int]int{}, more: more}
		cfg.Trainer = c
		r, err := simulate.New(cfg)
		ok(t, err)
		if _, err := r.Rounds(t.Context()); err == nil || !strings.Contains(err.Error(), "the trainer answered for") {
			t.Errorf("%+d answers: %v", more, err)
		}
		ok(t, errors.Join(r.Close(), c.Close()))
	}
}

// A client that cannot train ends the run, and nobody waits for it.
func TestTogetherFails(t *testing.T) {
	cfg := config(t, 8, false)
	c := &cohort{Trainer: edge.NewProgramTrainer(1), size: 4, had: map[int]int{}, fail: true}
	defer c.Close()
	cfg.Trainer = c
	r, err := simulate.New(cfg)
	ok(t, err)
	defer r.Close()
	if _, err := r.Rounds(t.Context()); err == nil {
		t.Error("a client that cannot train was taken in")
	}
}
