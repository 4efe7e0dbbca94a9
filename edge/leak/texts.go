package leak

import (
	"math/rand/v2"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// texts are an update's examples, and others of the same kind that are not in it.
func (p *probe) texts(trial int) (in, out []dataset.Example, err error) {
	if p.Data == nil {
		if in, err = p.madeUp("in", trial); err == nil {
			out, err = p.madeUp("out", trial)
		}
		return in, out, err
	}
	rng := rand.New(p.source("own", trial))
	order := rng.Perm(len(p.Data.Examples))
	pick := func(indices []int) ([]dataset.Example, error) { return p.rows(p.Data.Pick(indices).Examples) }
	if in, err = pick(order[:p.examples]); err == nil {
		out, err = pick(order[p.examples : 2*p.examples])
	}
	return in, out, err
}

// rows are examples that fit a row each, no more than an update has: of one that is longer
// its first parts.
func (p *probe) rows(examples []dataset.Example) ([]dataset.Example, error) {
	rows, _, err := task.Rows(p.task, examples)
	return rows[:min(len(rows), p.examples)], err
}

// madeUp are examples for the job's task, with labels in shares that differ from trial to
// trial, as they do from device to device.
func (p *probe) madeUp(what string, trial int) ([]dataset.Example, error) {
	rng := rand.New(p.source(what, trial))
	n := p.examples
	var set *dataset.Set
	var err error
	switch p.Layout.Method.Task {
	case model.TaskSpan, model.TaskAnswer, model.TaskDenoise:
		set, err = dataset.Documents(dataset.DocumentConfig{Seed: rng.Uint64(), Split: "train", Clients: 1, PerClient: n})
	case model.TaskListen, model.TaskTranscribe:
		set, err = dataset.Spoken(rng.Uint64(), "train", 1, n)
	case model.TaskImage:
		set, err = dataset.Digits(rng.Uint64(), "train", 1, n)
	default:
		set, err = dataset.Invoices(dataset.InvoiceConfig{Seed: rng.Uint64(), Split: "train", Clients: 1, PerClient: n})
	}
	if err != nil {
		return nil, err
	}
	label := p.labels(rng)
	for i := range set.Examples {
		e := &set.Examples[i]
		if k, ok := p.task.(task.Labeller); ok && p.Layout.Method.Task.Labelled() {
			*e = k.Open(*e)
		}
		if k, ok := p.task.(task.Transcriber); ok {
			e.Text = k.Any(rng.IntN)
		}
		switch e.Form() {
		case dataset.FormWords:
			for k := range e.Tags {
				e.Tags[k] = label()
			}
		case dataset.FormLists:
			e.Labels = append(e.Labels, label())
		case dataset.FormTexts, dataset.FormPictures, dataset.FormRecordings:
			e.Label = label()
		}
	}
	return p.rows(set.Examples)
}

// labels draws from shares that are themselves drawn.
func (p *probe) labels(rng *rand.Rand) func() int {
	shares := make([]float64, max(1, p.Layout.Classes))
	total := 0.0
	for i := range shares {
		e := rng.ExpFloat64()
		shares[i] = e * e
		total += shares[i]
	}
	return func() int {
		x := rng.Float64() * total
		for i, s := range shares {
			if x -= s; x < 0 {
				return i
			}
		}
		return len(shares) - 1
	}
}
