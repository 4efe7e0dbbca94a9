// Command documents trains the embedded base for documents to answer, centrally and
// without privacy, or in a simulated federation (-rounds), with the programs that
// devices run, and scores documents of senders that it has not seen. It writes a row of
// a table.
//
//	go run -C lab ./bench/documents [-base FOLDER] [-method full] [-steps 1200] [-rounds 40]
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/bench/central"
	"github.com/starling-fl/starling/model"
	embedded "github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/model/evaluate"
	"github.com/starling-fl/starling/simulate"
	"github.com/starling-fl/starling/wasm/compiler"
)

type flags struct {
	base, method, out           string
	steps, batch, senders, test int
	rate                        float64
	seed                        uint64

	rounds, cohort, local int
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
	flag.IntVar(&f.rounds, "rounds", 0, "rounds of a federation in place of central training: of a million devices, DP-DyLoRA's noise at a simulated epsilon of 2")
	flag.IntVar(&f.cohort, "cohort", 28, "devices that stand for ten thousand in a round")
	flag.IntVar(&f.local, "local", 12, "steps of a device in a round, of half a batch")
	flag.Parse()
	if err := f.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "documents:", err)
		os.Exit(1)
	}
}

// Of the population that is simulated.
const (
	population   = 1_000_000
	realCohort   = 10_000
	perSender    = 8
	perDevice    = 8 // senders
	trainThreads = 2
)

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
	rounds, steps, batch := 1, 1, f.batch
	if f.rounds > 0 {
		rounds, steps, batch = f.rounds, f.local, f.batch/2
	}
	j, err := job.Parse(strings.NewReader(fmt.Sprintf(`
name: documents
task: answer
rounds: %[1]d
adapter: {rank_min: 8, rank_max: 8, sequence: %[2]d, answer: %[3]d, %[4]s}
training: {%[5]sbatch: %[6]d, steps: %[9]d}
cohort: {population: %[7]d, sampling_rate: %[8]g, floor: 2, max_enrolled: %[7]d}
shard: {floor: 2, breach_bits: 0}
privacy: {simulated_population: %[7]d, simulated_cohort: %[10]d}
`, rounds, documentTokens, answerTokens, method, rate, batch, population, float64(f.cohort)/population, steps, realCohort)))
	return j.ForBase(base.Config), rank, err
}

func (f flags) load() (*model.Base, error) {
	if f.base == "" {
		return embedded.Documents()
	}
	return model.LoadBaseDir(f.base)
}

func (f flags) documents(split string, senders, each int) (*dataset.Set, error) {
	return dataset.Documents(dataset.DocumentConfig{Seed: f.seed, Split: split, Clients: max(1, senders/perDevice),
		PerClient: perDevice * each, Providers: perDevice})
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
	train, err := f.documents("train", f.senders, perSender)
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
	scores, err := evaluate.NewQuestions(compiler.New(), base, layout, documentTokens, test)
	if err != nil {
		return err
	}
	before, err := scores[0].Score(ctx, adapter, rank)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "before: exact match %.1f %%, ANLS %.1f\n", 100*before.ExactMatch, 100*before.ANLS)
	began := cputime.Now()
	rate := j.Training.LearningRate
	how := fmt.Sprintf("%d x %d", f.steps, f.batch)
	epsilon := "none"
	if f.rounds > 0 {
		result, err := f.federate(ctx, j, base, train)
		if err != nil {
			return err
		}
		adapter, epsilon = result.Adapter, fmt.Sprintf("%.3g", result.Guarantee.Epsilon)
		how = fmt.Sprintf("%d rounds of %d x %d x %d", f.rounds, f.cohort, f.local, f.batch/2)
	} else {
		training := central.Training{Job: j, Base: base, Task: t, Rank: rank, Seed: f.seed, Progress: os.Stderr,
			Parts: []central.Part{{Steps: f.steps - 2*(f.steps/4), Rate: rate}, {Steps: f.steps / 4, Rate: rate / 3}, {Steps: f.steps / 4, Rate: rate / 10}}}
		if err := training.Run(ctx, train.Examples, adapter); err != nil {
			return err
		}
	}
	trained := cputime.Now() - began
	after, err := scores[0].Score(ctx, adapter, rank)
	if err != nil {
		return err
	}
	fmt.Println("| method | steps x questions | epsilon | senders | questions of unseen senders | exact match | ANLS | before | processor time of training |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	fmt.Printf("| %s, rate %.2g | %s | %s | %d | %d | %.1f %% | %.1f | %.1f %%, %.1f | %.0f s |\n", f.method, rate, how, epsilon, f.senders, len(test.Examples),
		100*after.ExactMatch, 100*after.ANLS, 100*before.ExactMatch, 100*before.ANLS, trained.Seconds())
	if f.out == "" {
		return nil
	}
	return model.WriteCheckpoint(f.out, &model.Checkpoint{CheckpointInfo: model.CheckpointInfo{Job: j.Name, Seq: documentTokens, BestRank: rank,
		Privacy: "none: trained centrally"}, Base: base, Adapter: adapter})
}

// federate trains on devices of eight senders each, which stand for a million.
func (f flags) federate(ctx context.Context, j job.Job, base *model.Base, train *dataset.Set) (simulate.Result, error) {
	var devices simulate.Each
	for at := 0; at < len(train.Examples); at += perDevice * perSender {
		devices = append(devices, &dataset.Set{Name: train.Name, Examples: train.Examples[at : at+perDevice*perSender]})
	}
	run, err := simulate.New(simulate.Config{
		Job: j, Base: base, Population: simulate.Reused{Of: devices, N: population}, Data: "generated documents",
		Seed: binary.LittleEndian.AppendUint64(make([]byte, 24), f.seed), Workers: trainThreads,
		Progress: func(r simulate.Round) {
			fmt.Fprintf(os.Stderr, "round %d: %d devices, %.0f %% clipped, signal %.3g, noise %.3g\n", r.Number, r.Cohort, 100*r.Clipped, r.SignalNorm, r.NoiseNorm)
		},
	})
	if err != nil {
		return simulate.Result{}, err
	}
	defer run.Close()
	return run.Rounds(ctx)
}
