// Command documents trains the embedded base for documents to answer, centrally and
// without privacy, with the programs that devices run, and scores documents of senders
// that it has not seen. It writes a row of a table.
//
//	go run ./bench/documents [-base FOLDER] [-method full] [-steps 1200]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/starling-fl/starling/bench/central"
	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/internal/cputime"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	embedded "github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/tokenizer"
	"github.com/starling-fl/starling/wasm/compiler"
)

type flags struct {
	base, method, out           string
	steps, batch, senders, test int
	rate                        float64
	seed                        uint64
}

// Lengths of a document with its question, and of an answer, in tokens: the demo's.
const (
	documentTokens = 96
	answerTokens   = 16
)

func main() {
	var f flags
	flag.StringVar(&f.base, "base", "", "folder of a t5 with boxes; none: the embedded base")
	flag.StringVar(&f.method, "method", "full", "what is trained: full or lora (all maps, rank 8)")
	flag.StringVar(&f.out, "out", "", "folder for the checkpoint; none: it is not kept")
	flag.IntVar(&f.steps, "steps", 1200, "half of them at the full learning rate, then a quarter each at a third and at a tenth")
	flag.IntVar(&f.batch, "batch", 16, "questions of a step")
	flag.Float64Var(&f.rate, "rate", 0, "learning rate; 0: the job's default")
	flag.IntVar(&f.senders, "senders", 768, "senders that are trained on, of eight questions each")
	flag.IntVar(&f.test, "test", 400, "questions of other senders that are scored")
	flag.Uint64Var(&f.seed, "seed", 1, "seed of the documents and their order")
	flag.Parse()
	if err := f.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "documents:", err)
		os.Exit(1)
	}
}

// job is what a fleet would be told.
func (f flags) job(base *model.Base) (job.Job, int, error) {
	rank, method := 0, "method: full"
	if f.method == "lora" {
		rank, method = 8, "targets: [q, k, v, o, wi, wo]"
	}
	rate := ""
	if f.rate > 0 {
		rate = fmt.Sprintf("learning_rate: %v, ", f.rate)
	}
	j, err := job.Parse(strings.NewReader(fmt.Sprintf(`
name: documents
task: answer
adapter: {rank_min: 8, rank_max: 8, sequence: %d, answer: %d, %s}
training: {%sbatch: %d}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`, documentTokens, answerTokens, method, rate, f.batch)))
	return j.ForBase(base.Config), rank, err
}

func (f flags) load() (*model.Base, error) {
	if f.base == "" {
		return embedded.Documents()
	}
	return model.LoadBaseDir(f.base)
}

func (f flags) documents(split string, senders, each int) (*dataset.Set, error) {
	const clients = 8 // senders of one
	return dataset.Documents(dataset.DocumentConfig{Seed: f.seed, Split: split, Clients: max(1, senders/clients), PerClient: clients * each, Providers: clients})
}

func (f flags) run(ctx context.Context) error {
	base, err := f.load()
	if err != nil {
		return err
	}
	j, rank, err := f.job(base)
	if err != nil {
		return err
	}
	train, err := f.documents("train", f.senders, 8)
	if err != nil {
		return err
	}
	test, err := f.documents("test", f.test/4, 4)
	if err != nil {
		return err
	}
	layout, err := model.NewLayout(base.Config, j.Method(), 0)
	if err != nil {
		return err
	}
	t, err := task.New(base, layout, documentTokens)
	if err != nil {
		return err
	}
	adapter := model.NewAdapter(layout, f.seed)
	before, err := score(ctx, base, t, adapter, rank, test.Examples)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "before: exact match %.1f %%, ANLS %.1f\n", 100*before.exact, 100*before.anls)
	began := cputime.Now()
	rate := j.Training.LearningRate
	training := central.Training{Job: j, Base: base, Task: t, Rank: rank, Seed: f.seed, Progress: os.Stderr,
		Parts: []central.Part{{Steps: f.steps - 2*(f.steps/4), Rate: rate}, {Steps: f.steps / 4, Rate: rate / 3}, {Steps: f.steps / 4, Rate: rate / 10}}}
	if err := training.Run(ctx, train.Examples, adapter); err != nil {
		return err
	}
	trained := cputime.Now() - began
	after, err := score(ctx, base, t, adapter, rank, test.Examples)
	if err != nil {
		return err
	}
	fmt.Println("| method | steps x questions | of senders | questions of unseen senders | exact match | ANLS | before | processor time of training |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- |")
	fmt.Printf("| %s, rate %.2g | %d x %d | %d | %d | %.1f %% | %.1f | %.1f %%, %.1f | %.0f s |\n", f.method, rate, f.steps, f.batch, f.senders, len(test.Examples),
		100*after.exact, 100*after.anls, 100*before.exact, 100*before.anls, trained.Seconds())
	if f.out == "" {
		return nil
	}
	return model.WriteCheckpoint(f.out, &model.Checkpoint{CheckpointInfo: model.CheckpointInfo{Job: j.Name, Seq: documentTokens, BestRank: rank,
		Privacy: "none: trained centrally"}, Base: base, Adapter: adapter})
}

// figures are means over questions.
type figures struct{ exact, anls float64 }

func score(ctx context.Context, base *model.Base, t task.Task, adapter *model.Adapter, rank int, examples []dataset.Example) (s figures, err error) {
	reads, ok := t.(task.Reader)
	if !ok {
		return s, errors.New("the task asks nothing")
	}
	tok, err := tokenizer.ParseFor(base.Tokenizer, base.Config.VocabSize, base.Config.PadTokenID)
	if err != nil {
		return s, err
	}
	g, err := nn.NewGenerator(adapter.Layout(), base, documentTokens, compiler.New())
	if err != nil {
		return s, err
	}
	rows, err := task.ReadAll(reads, examples)
	if err != nil {
		return s, err
	}
	answers, err := g.Answers(ctx, adapter.Slice(rank), rank, rows)
	if err != nil {
		return s, err
	}
	for i, a := range answers {
		said := tok.Decode(a.Tokens)
		s.exact += task.ExactMatch(said, examples[i].Answers) / float64(len(examples))
		s.anls += task.ANLS(said, examples[i].Answers) / float64(len(examples))
	}
	return s, nil
}
