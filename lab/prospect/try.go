package prospect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/sweep"
)

// Epsilons are tried in addition to no noise, unless others are given.
var Epsilons = []float64{2, 8, 30}

// Trial simulates a fleet. Its lab has the base and reads the data file.
type Trial struct {
	Fleet   Fleet
	Data    string // the file
	Epsilon float64
	Folder  string // keeps the simulations, so that the same trial goes on where it was interrupted
	Seed    uint64
	Limit   time.Duration // no simulation goes on for longer than this, all together; 0: without limit
	Begin   func(epsilon float64)
	// Arithmetic is the class that trials compute with (training.arithmetic), which changes accuracy by chance alone.
	Arithmetic string
}

// Run simulates each epsilon and returns which the fleet can afford, with its job file.
func (t Trial) Run(ctx context.Context, lab *sweep.Lab) (*Answer, string, error) {
	began := time.Now()
	a := &Answer{Fleet: t.Fleet, Data: t.Data}
	rows := []float64{0}
	if t.Fleet.From != "nobody" {
		list := append(slices.Clone(Epsilons), t.Epsilon)
		slices.Sort(list)
		rows = append(rows, slices.Compact(list)...)
	}
	for _, epsilon := range rows {
		row := Row{Epsilon: epsilon, Rho: map[string]float64{}}
		if epsilon > 0 {
			t.weigh(&row, lab)
		}
		a.Rows = append(a.Rows, row)
	}
	limited := ctx
	if t.Limit > 0 {
		var cancel func()
		limited, cancel = context.WithTimeout(ctx, t.Limit)
		defer cancel()
	}
	// What is asked for comes first, behind the run without noise that the others are compared with.
	order := slices.Clone(rows)
	slices.SortStableFunc(order, func(x, y float64) int {
		rank := func(e float64) int {
			switch e {
			case 0:
				return 0
			case t.Epsilon:
				return 1
			}
			return 2
		}
		return rank(x) - rank(y)
	})
	for _, epsilon := range order {
		row := &a.Rows[slices.Index(rows, epsilon)]
		if t.Begin != nil {
			t.Begin(epsilon)
		}
		_, keys, err := t.Fleet.Job(epsilon, t.Fleet.adversary(), "")
		if err != nil {
			return nil, "", err
		}
		s, err := t.Fleet.Settings(t.Data, keys, t.Seed)
		if err != nil {
			return nil, "", err
		}
		r, _, err := lab.Make(limited, sweep.Point{Settings: s.WithArithmetic(t.Arithmetic)}, t.Folder)
		if err != nil && limited.Err() != nil && ctx.Err() == nil {
			break
		}
		if err != nil && !errors.Is(err, sweep.ErrCheckpoint) {
			return nil, "", err
		}
		a.take(row, r)
	}
	if own := t.Fleet.adversary().Mechanism; own != job.NoiseCentral && own != "" && t.Fleet.Rate()*float64(t.Fleet.Devices) > most {
		a.Stands = strings.TrimSpace(a.Stands + " Trials had the coordinator's noise in place of the devices', which is longer: see the last columns.")
	}
	a.choose(t.Epsilon)
	comment := ""
	for _, r := range a.Rows {
		if r.Tried && r.Epsilon == a.Chosen && r.Epsilon > 0 {
			comment = "simulated: " + percent(r.Accuracy)
			if a.Rows[0].Tried {
				comment += ", " + percent(a.Rows[0].Accuracy) + " without noise"
			}
		}
	}
	_, keys, err := t.Fleet.Job(a.Chosen, t.Fleet.adversary(), comment)
	a.Seconds = time.Since(began).Seconds()
	return a, t.Fleet.file(keys), err
}

// weigh computes the noise of each mechanism at a row's epsilon. A mechanism with which no job is possible has none.
func (t Trial) weigh(row *Row, lab *sweep.Lab) {
	for _, m := range Adversaries {
		if m.Mechanism == "" {
			continue
		}
		j, _, err := t.Fleet.Job(row.Epsilon, m, "")
		if err != nil {
			continue
		}
		if terms, err := core.NewTerms(j, lab.Base); err == nil {
			row.Rho[m.Mechanism] = terms.Rho()
		}
	}
}
