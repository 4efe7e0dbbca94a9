// Command sroie trains a span head with boxes on receipts, centrally and without
// privacy, with the programs that devices run, and scores receipts of providers that
// it has not seen. It writes a row of a table.
//
//	go run -C lab ./bench/sroie -base FOLDER [-data ../../shared/data/sroie/receipts_dev.jsonl.gz] [-out CHECKPOINT]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/partition"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/bench/central"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/wasm/compiler"
)

type flags struct {
	base, data, out    string
	steps, batch, tail int
	seed               uint64
	sequence, test     int
	boxes              bool
}

func main() {
	var f flags
	flag.StringVar(&f.base, "base", "", "folder of an encoder, such as all-MiniLM-L6-v2")
	flag.StringVar(&f.data, "data", "../../shared/data/sroie/receipts_dev.jsonl.gz", "receipts")
	flag.StringVar(&f.out, "out", "", "folder for the checkpoint; none: it is not kept")
	flag.IntVar(&f.steps, "steps", 90, "steps at the full learning rate")
	flag.IntVar(&f.tail, "tail", 30, "steps at a fifth of it after those")
	flag.IntVar(&f.batch, "batch", 8, "receipts of a step")
	flag.IntVar(&f.sequence, "sequence", 288, "tokens of a question with its receipt; longer ones are read in parts")
	flag.IntVar(&f.test, "test", 0, "questions scored, 0: all of the tenth of providers that is held out")
	flag.Uint64Var(&f.seed, "seed", 1, "seed of the split and the order")
	flag.BoolVar(&f.boxes, "boxes", true, "read where words stand")
	flag.Parse()
	if err := f.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "sroie:", err)
		os.Exit(1)
	}
}

// job is what a fleet would be told.
func (f flags) job(base *model.Base) (job.Job, error) {
	also := ""
	if f.boxes {
		also = "also: [" + model.BoxEmbeddings + "]"
	}
	j, err := job.Parse(strings.NewReader(fmt.Sprintf(`
name: receipts
task: span
adapter:
  rank_min: 8
  rank_max: 8
  sequence: %d
  targets: [query, key, value, attention.output.dense, intermediate.dense, output.dense]
  %s
training: {steps: %d, batch: %d}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`, f.sequence, also, f.steps, f.batch)))
	return j.ForBase(base.Config), err
}

func (f flags) run(ctx context.Context) error {
	base, err := model.LoadBaseDir(f.base)
	if err != nil {
		return err
	}
	j, err := f.job(base)
	if err != nil {
		return err
	}
	set, err := dataset.Load(f.data)
	if err != nil {
		return err
	}
	parts, err := partition.SplitWhole(set, partition.OwnerProvider, f.seed, 0.8, 0.1, 0.1)
	if err != nil {
		return err
	}
	layout, err := model.NewLayout(base.Config, j.Method(), 0)
	if err != nil {
		return err
	}
	t, err := task.New(base, layout, f.sequence)
	if err != nil {
		return err
	}
	began := cputime.Now()
	adapter := model.NewAdapter(layout, f.seed)
	rate := j.Training.LearningRate
	training := central.Training{Job: j, Base: base, Task: t, Rank: 8, Seed: f.seed, Progress: os.Stderr,
		Parts: []central.Part{{Steps: f.steps, Rate: rate}, {Steps: f.tail, Rate: rate / 5}}}
	if err := training.Run(ctx, parts[0].Examples, adapter); err != nil {
		return err
	}
	trained := cputime.Now() - began
	held := parts[2].Examples
	if f.test > 0 {
		held = held[:min(f.test, len(held))]
	}
	s, err := score(ctx, base, t.(*task.Span), adapter, f.sequence, held)
	if err != nil {
		return err
	}
	fmt.Println("| boxes | steps x receipts | questions of unseen providers | ANLS | exact match | token F1 | ANLS by field | processor time of training |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- |")
	fmt.Printf("| %v | %d x %d | %d | %.3f | %.1f %% | %.3f | %s | %.0f s |\n", f.boxes, f.steps+f.tail, f.batch, len(held), s.anls, 100*s.exact, s.f1, s.byField, trained.Seconds())
	if f.out == "" {
		return nil
	}
	return model.WriteCheckpoint(f.out, &model.Checkpoint{CheckpointInfo: model.CheckpointInfo{Job: j.Name, Seq: f.sequence, BestRank: 8,
		Privacy: "none: trained centrally"}, Base: base, Adapter: adapter})
}

// figures are means over questions.
type figures struct {
	anls, exact, f1 float64
	byField         string
}

func score(ctx context.Context, base *model.Base, t *task.Span, adapter *model.Adapter, sequence int, examples []dataset.Example) (s figures, err error) {
	p, err := nn.NewPredictor(adapter.Layout(), base, sequence, compiler.New())
	if err != nil {
		return s, err
	}
	parts, of, err := task.Rows(t, examples)
	if err != nil {
		return s, err
	}
	rows, err := task.ReadAll(t, parts)
	if err != nil {
		return s, err
	}
	logits, err := p.Outputs(ctx, adapter.Slice(8), 8, rows, len(parts))
	if err != nil {
		return s, err
	}
	said, sure := make([]string, len(examples)), make([]float64, len(examples))
	for i := range parts {
		text, probability, err := t.Best(&parts[i], logits[i])
		if err != nil {
			return s, err
		}
		if probability > sure[of[i]] {
			said[of[i]], sure[of[i]] = text, probability
		}
	}
	fields, counts := map[string]float64{}, map[string]float64{}
	for i, e := range examples {
		a := evaluate.ANLS(said[i], e.Answers)
		s.anls += a / float64(len(examples))
		s.exact += evaluate.ExactMatch(said[i], e.Answers) / float64(len(examples))
		s.f1 += evaluate.TokenF1(said[i], e.Answers) / float64(len(examples))
		fields[e.Question] += a
		counts[e.Question]++
	}
	var cells []string
	for _, name := range []string{"company", "date", "address", "total"} {
		cells = append(cells, fmt.Sprintf("%s %.2f", name, fields[name]/counts[name]))
	}
	s.byField = strings.Join(cells, ", ")
	return s, nil
}
