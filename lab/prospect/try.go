package prospect

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/internal/app/guarantee"
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
	// Begin is called before each simulation: of rounds, at an epsilon, with a mechanism that protects from an
	// adversary.
	Begin func(rounds int, epsilon float64, from string)
	// Arithmetic is the class that trials compute with (training.arithmetic), which changes accuracy by chance alone.
	Arithmetic string
}

// Run simulates each epsilon with each mechanism and returns which the fleet can afford, with its job file. Where no
// epsilon is useful it tries fewer rounds, which need less noise.
func (t Trial) Run(ctx context.Context, lab *sweep.Lab) (*Answer, string, error) {
	began := time.Now()
	limited := ctx
	if t.Limit > 0 {
		var cancel func()
		limited, cancel = context.WithTimeout(ctx, t.Limit)
		defer cancel()
	}
	over := func() bool { return limited.Err() != nil && ctx.Err() == nil }
	a, err := t.table(limited, lab, over)
	if err != nil {
		return nil, "", err
	}
	a.choose(t.Epsilon)
	if a.noisy && t.Fleet.Rounds > fewRounds && !over() {
		t.Fleet.Rounds = fewRounds
		few, err := t.table(limited, lab, over)
		if err != nil {
			return nil, "", err
		}
		few.choose(t.Epsilon)
		a = a.against(few)
	}
	comment := ""
	if r := a.row(a.Chosen); r != nil && r.Tried && r.Epsilon > 0 {
		comment = "simulated: " + percent(r.Accuracy) + ", " + percent(a.row(0).Accuracy) + " without noise"
	}
	_, keys, err := a.Fleet.Job(a.Chosen, a.adversary(), comment)
	a.Seconds = time.Since(began).Seconds()
	return a, a.file(keys), err
}

// table simulates the epsilons at the fleet's rounds. What is behind the limit is not tried.
func (t Trial) table(ctx context.Context, lab *sweep.Lab, over func() bool) (*Answer, error) {
	a := &Answer{Fleet: t.Fleet, Data: t.Data, Rows: []Row{{}}}
	var list []float64
	if t.Fleet.From != "nobody" {
		list = append(slices.Clone(Epsilons), t.Epsilon)
		slices.Sort(list)
		list = slices.Compact(list)
	}
	for _, epsilon := range list {
		row, err := t.weigh(epsilon, lab)
		if err != nil {
			return nil, err
		}
		a.Rows = append(a.Rows, row)
	}
	if len(list) > 0 {
		j, _, err := t.Fleet.Job(t.Epsilon, t.Fleet.adversary(), "")
		if err != nil {
			return nil, err
		}
		a.Observer = guarantee.Whom(j.Observer(), j.Shard.Corrupt)
	}
	for _, at := range t.order(a) {
		if over() {
			break
		}
		if err := t.try(ctx, lab, a, at.row, at.of); err != nil && !over() {
			return nil, err
		}
	}
	return a, nil
}

type cell struct {
	row *Row
	of  Adversary
}

// order is that of the simulations: without noise, what is asked for, other epsilons, and then other mechanisms.
func (t Trial) order(a *Answer) (out []cell) {
	own := a.adversary()
	out = append(out, cell{&a.Rows[0], own})
	rows := slices.Clone(a.Rows[1:])
	for i := range rows {
		out = append(out, cell{&a.Rows[i+1], own})
	}
	slices.SortStableFunc(out[1:], func(x, y cell) int {
		switch t.Epsilon {
		case x.row.Epsilon:
			return -1
		case y.row.Epsilon:
			return 1
		}
		return 0
	})
	for _, c := range slices.Clone(out[1:]) {
		for _, m := range a.others() {
			if c.row.Others[m.Name] != nil {
				out = append(out, cell{c.row, m})
			}
		}
	}
	return out
}

// try simulates a row with a mechanism.
func (t Trial) try(ctx context.Context, lab *sweep.Lab, a *Answer, row *Row, of Adversary) error {
	at := row.cell(of.Name)
	if t.Begin != nil {
		t.Begin(t.Fleet.Rounds, row.Epsilon, of.Name)
	}
	_, keys, err := t.Fleet.Job(row.Epsilon, of, "")
	if err != nil {
		return err
	}
	s, err := t.Fleet.Settings(t.Data, keys, t.Seed, at.Multiplier)
	if err != nil {
		return err
	}
	r, _, err := lab.Make(ctx, sweep.Point{Settings: s.WithArithmetic(t.Arithmetic)}, t.Folder)
	if err != nil && !errors.Is(err, sweep.ErrCheckpoint) {
		return err
	}
	a.take(at, r)
	return nil
}

// weigh computes the noise of each mechanism at an epsilon, as the deployment's terms have it: against the job's own
// observer. A mechanism with which no job is possible is left out, but for the fleet's own.
func (t Trial) weigh(epsilon float64, lab *sweep.Lab) (Row, error) {
	row := Row{Epsilon: epsilon, Belief: 1 / (1 + math.Exp(-epsilon)), Others: map[string]*Cell{}}
	own := t.Fleet.adversary()
	for _, m := range Adversaries {
		if m.Mechanism == "" {
			continue
		}
		c := &row.Cell
		if m.Name != own.Name {
			c = &Cell{}
		}
		err := t.noise(epsilon, m, lab, c)
		switch {
		case err == nil && m.Name != own.Name:
			row.Others[m.Name] = c
		case err != nil && m.Name == own.Name:
			return row, err
		}
	}
	return row, nil
}

// noise is what a mechanism's job adds at an epsilon.
func (t Trial) noise(epsilon float64, m Adversary, lab *sweep.Lab, c *Cell) error {
	j, _, err := t.Fleet.Job(epsilon, m, "")
	if err != nil {
		return err
	}
	terms, err := core.NewTerms(j, lab.Base)
	if err != nil {
		return err
	}
	c.Rho, c.Multiplier = terms.Rho(), terms.Width()
	return nil
}
