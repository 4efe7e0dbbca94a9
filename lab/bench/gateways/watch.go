//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/starling-fl/starling/lab/internal/resident"
)

// watch kills one part after another until the time is up, and prints how it goes.
func (d *deployment) watch(ctx context.Context) error {
	began := time.Now()
	strike := time.NewTicker(d.o.kill)
	defer strike.Stop()
	line := time.NewTicker(max(10*time.Second, min(time.Minute, d.o.lasts/20)))
	defer line.Stop()
	look := time.NewTicker(2 * time.Second)
	defer look.Stop()
	var entries int
	moved := time.Now()
	fmt.Println("  time  rounds  kills  owner MB  gateways MB")
	var early, late []int // of the owner and gateways together, in kB: before and after half the time from the tenth minute
	for time.Since(began) < d.o.lasts {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-strike.C:
			what, err := d.strike()
			fmt.Printf("%6s %s\n", time.Since(began).Round(time.Second), what)
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		case <-look.C:
			l, err := d.ledger()
			if err != nil {
				return err
			}
			if len(l.Entries) > entries {
				entries, moved = len(l.Entries), time.Now()
			}
			if still := time.Since(moved); still > d.o.stall {
				return fmt.Errorf("no round ended for %v", still.Round(time.Second))
			}
		case <-line.C:
			owner, passing := d.memory()
			fmt.Printf("%6s %7d %6d %9d %12d\n", time.Since(began).Round(time.Second), entries, d.kills, owner>>10, passing>>10)
			warm := min(10*time.Minute, d.o.lasts/4)
			switch since := time.Since(began); {
			case since < warm:
			case since < warm+(d.o.lasts-warm)/2:
				early = append(early, owner+passing)
			default:
				late = append(late, owner+passing)
			}
		}
	}
	a, b := median(early), median(late)
	fmt.Printf("memory of owner and gateways: %d MB in the first half, %d MB in the second (medians)\n", a>>10, b>>10)
	if most := d.o.growth(); 100*b > (100+most)*a {
		return fmt.Errorf("memory grew from %d to %d MB, %d %% were allowed", a>>10, b>>10, most)
	}
	return nil
}

// growth is by how many percent memory may grow between the halves of what follows the first ten
// minutes. A run of less than half an hour has too few lines to tell 5 % from chance.
func (o options) growth() int {
	if o.lasts < 30*time.Minute {
		return 33
	}
	return 5
}

// memory is what the owner and all gateways hold, in kB.
func (d *deployment) memory() (owner, passing int) {
	for _, p := range d.owners {
		owner = max(owner, resident.Set(p.cmd.Process.Pid))
	}
	for _, p := range d.passing {
		passing += resident.Set(p.cmd.Process.Pid)
	}
	return owner, passing
}

func median(v []int) int {
	if len(v) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(v))[len(v)/2]
}
