package commands

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/data/tokenizer/unigram"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine/plugins"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/lab/pretraining"
	"github.com/starling-fl/starling/model"
)

// generatedLines and generatedSeed define the corpus of --generated, and so
// the default base.
const (
	generatedLines = 60000
	generatedSeed  = 1
)

type pretrainReport struct {
	Out       string  `json:"out"`
	Engine    string  `json:"engine"`
	SHA256    string  `json:"sha256"` // of the base's blob
	Bytes     int     `json:"bytes"`  // of the folder
	Steps     int     `json:"steps"`
	FirstLoss float64 `json:"first_loss"`
	LastLoss  float64 `json:"last_loss"`
	Seconds   float64 `json:"seconds"`
	Generator string  `json:"generator,omitempty"` // version, with --generated
}

// pretrainState is the file in --out that an interrupted run leaves.
const pretrainState = "pretraining.safetensors"

// architecture is a kind of base, and how one is made.
type architecture interface {
	// common is what all of them are told; until flags say otherwise, this one's defaults.
	common() *pretraining.Spec
	// resize takes the sizes that flags give; the others stay as this one's defaults.
	resize(given func(flag string) bool, to sizes) error
	// train makes a base.
	train(ctx context.Context, format model.Format, progress pretraining.Progress) (*model.Base, error)
	// generator names what --generated trains it on; "": nothing is generated for it.
	generator() string
}

// sizes are flags that each architecture takes in its own way.
type sizes struct{ hidden, layers, heads, vocab int }

func newPretrainCmd(a *command.App) *cobra.Command {
	var (
		generated, packed bool
		out, format, kind string
		to                = sizes{hidden: 64, layers: 2, vocab: 4096}
		choice            = plugins.Flags()
		encoder           = &encoderBase{EncoderSpec: pretraining.DefaultEncoder(model.BERT(to.vocab, to.hidden, to.layers, to.heads, 64))}
		documents         = defaultDocuments()
		heard             = defaultHeard()
		of                = map[string]architecture{"bert": encoder, "t5": documents, "llama": defaultCalls(), "hubert": heard}
		flags             = encoder.Spec // what flags say
	)
	cmd := &cobra.Command{
		Use:   "pretrain --corpus FILE... --out DIR",
		Short: "Train a base by masked-language modelling on public text",
		Long: `Train a tokenizer and a BERT-style encoder by masked-language modelling on
text that is public, one document a line, and write them as a folder in
Hugging Face layout: config.json, model.safetensors, tokenizer.json.

--generated trains on generated text instead: that makes the default base.
The same corpus, sizes and seed give the same files: training runs in a
compiled program, which computes the same bits everywhere. An interrupted run
leaves its state in --out; the same command goes on from there.

--architecture t5 --generated makes a base that answers questions about documents
(starling demo --task answer): a T5 that reads where words stand, trained on generated
invoices of public providers to go on behind two tokens, to fill in what is masked,
and to answer.

--architecture llama --generated makes a small decoder (starling demo --task causal),
trained to go on in generated commands with the calls of functions that they come to, in
words that everybody uses, and in generated prose.

--architecture hubert --recordings DIR makes a small HuBERT (8,000 samples a second, 40
frames of them) that tells the labels of recordings, as starling lab voices writes them: of each
it hears another pace, noise, place and filter whenever it comes. The head that tells them
is thrown away.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen := of[kind]
			switch {
			case out == "":
				return usage.Errorf("--out is missing: the folder to write")
			case chosen == nil:
				return usage.Errorf("--architecture is %.40q, want bert, t5, llama or hubert", kind)
			case kind == "hubert" && (generated || len(encoder.corpus) > 0):
				return usage.Errorf("--architecture hubert is trained on recordings: give --recordings DIR alone")
			case heard.from != "" && kind != "hubert":
				return usage.Errorf("--from is for --architecture hubert")
			case (kind == "hubert") != (heard.path != ""):
				return usage.Errorf("--recordings DIR and --architecture hubert need each other: give both")
			case kind != "hubert" && generated == (len(encoder.corpus) > 0):
				return usage.Errorf("give either --corpus FILE... or --generated")
			case kind == "t5" && !generated:
				return usage.Errorf("--architecture t5 is trained on generated documents: give --generated")
			case documents.sentinels < 0 || documents.sentinels > 100:
				return usage.Errorf("--sentinels is %d, want 0 to 100", documents.sentinels)
			case kind == "llama" && !generated:
				return usage.Errorf("--architecture llama is trained on generated commands: give --generated")
			}
			spec, given := chosen.common(), cmd.Flags().Changed
			for name, set := range map[string]func(){
				"seq": func() { spec.Sequence = flags.Sequence }, "batch": func() { spec.Batch = flags.Batch },
				"steps": func() { spec.Steps = flags.Steps }, "lr": func() { spec.LearningRate = flags.LearningRate }, "seed": func() { spec.Seed = flags.Seed },
			} {
				if given(name) {
					set()
				}
			}
			if err := chosen.resize(given, to); err != nil {
				return usage.Wrap(err)
			}
			e, err := choice.Open()
			if err != nil {
				return err
			}
			encoder.Engine = e.Name
			spec.Backend, spec.StatePath = e.Backend, filepath.Join(out, pretrainState)
			r := pretrainReport{Out: out, Engine: e.Name, Steps: spec.Steps}
			began := time.Now()
			base, err := chosen.train(cmd.Context(), model.Format(format), trainProgress(a.Stderr, spec.Steps, &r))
			if errors.Is(err, context.Canceled) {
				return fmt.Errorf("interrupted; the same command goes on from %s", spec.StatePath)
			}
			if err != nil {
				return err
			}
			folder := model.Release{Base: base}.Files
			if packed {
				folder = base.Files
			}
			files, err := folder()
			if err != nil {
				return err
			}
			if err := model.WriteFiles(out, files); err != nil {
				return err
			}
			if err := os.Remove(spec.StatePath); err != nil {
				return err
			}
			for _, f := range files {
				r.Bytes += len(f)
			}
			sum, err := base.SHA256()
			if err != nil {
				return err
			}
			r.SHA256, r.Seconds = hex.EncodeToString(sum[:]), time.Since(began).Seconds()
			if generated {
				r.Generator = chosen.generator()
				if err := os.WriteFile(filepath.Join(out, "GENERATOR"), []byte(r.Generator+"\n"), 0o644); err != nil {
					return err
				}
			}
			return a.Emit(r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "base written to %s: %d bytes, loss %.3f -> %.3f in %d steps, sha256 %s\n",
					r.Out, r.Bytes, r.FirstLoss, r.LastLoss, r.Steps, r.SHA256)
				return err
			})
		},
	}
	f := cmd.Flags()
	choice.Add(f)
	f.StringArrayVar(&encoder.corpus, "corpus", nil, "text file, one document a line (repeatable)")
	f.BoolVar(&generated, "generated", false, "train on generated public text instead of a corpus")
	f.StringVar(&kind, "architecture", "bert", "bert: an encoder; t5: an encoder with a decoder, for documents and answers; llama: a decoder; hubert: an encoder of recordings")
	f.StringVar(&heard.path, "recordings", "", "with --architecture hubert: a folder of recordings, a folder for each label")
	f.StringVar(&heard.from, "from", "", "with --architecture hubert: a base's folder, which is trained further")
	f.IntVar(&documents.Answer, "answer", documents.Answer, "with --architecture t5: tokens that are written at most while training")
	f.BoolVar(&documents.patches, "patches", false, "with --architecture t5: boxes by a linear map, and the page's picture as patches (Federated DocVQA)")
	f.BoolVar(&documents.tables, "tables", false, "with --architecture t5: generated tables with questions and with statements, in addition to invoices")
	f.IntVar(&documents.sentinels, "sentinels", 0, "with --architecture t5: special tokens for so many hidden tokens of each objective of task pretrain, at most 100 (0: 4, 3 and 2)")
	f.StringVar(&out, "out", "", "folder to write")
	f.StringVar(&format, "format", string(model.NF4), "how matrices are stored: nf4, bf16 or f32")
	command.Values(cmd, "format", string(model.NF4), "bf16", "f32")
	f.BoolVar(&packed, "packed", false, "with --format nf4: write the 4-bit codes themselves, an eighth of the size, which no other program reads")
	f.IntVar(&to.hidden, "hidden", to.hidden, "width")
	f.IntVar(&to.layers, "layers", to.layers, "layers")
	f.IntVar(&to.heads, "heads", to.heads, "attention heads (0: one for 32 columns)")
	f.IntVar(&to.vocab, "vocab", to.vocab, "vocabulary size")
	f.IntVar(&flags.Sequence, "seq", flags.Sequence, "tokens of a row, and the positions of the base")
	f.IntVar(&flags.Batch, "batch", flags.Batch, "rows of a step")
	f.IntVar(&flags.Steps, "steps", flags.Steps, "training steps")
	f.Float64Var(&flags.LearningRate, "lr", flags.LearningRate, "peak learning rate")
	f.Uint64Var(&flags.Seed, "seed", flags.Seed, "seed of initialisation, order and masks")
	return cmd
}

// encoderBase is a BERT, trained on text: a corpus, or what is generated.
type encoderBase struct {
	pretraining.EncoderSpec
	corpus []string
}

func (s *encoderBase) common() *pretraining.Spec { return &s.Spec }
func (*encoderBase) generator() string           { return dataset.GeneratorVersion }

func (s *encoderBase) resize(_ func(string) bool, to sizes) error {
	s.Config = model.BERT(to.vocab, to.hidden, to.layers, to.heads, s.Sequence)
	return s.Config.Validate()
}

func (s *encoderBase) train(ctx context.Context, format model.Format, progress pretraining.Progress) (*model.Base, error) {
	if len(s.corpus) == 0 {
		return pretraining.MakeBase(ctx, s.EncoderSpec, pretraining.PublicCorpus(generatedSeed, generatedLines), format, progress)
	}
	text, unread := corpusText(s.corpus)
	base, err := pretraining.MakeBase(ctx, s.EncoderSpec, text, format, progress)
	switch {
	case *unread != nil:
		return nil, *unread
	case err != nil:
		return nil, fmt.Errorf("%s: %w", strings.Join(s.corpus, ", "), err)
	}
	return base, nil
}

// drawn fills batches from an endless sequence, an item a row. A run that goes on skips those that
// it has read. end ends the sequence.
func drawn[T any](items iter.Seq[T], batch int, encode func(rng *rand.Rand, done float64, item T, b task.Batch, row int) error) (draw pretraining.Draw, end func()) {
	next, end := iter.Pull(items)
	read := 0
	return func(step int, rng *rand.Rand, done float64, b task.Batch) error {
		for ; read < step*batch; read++ {
			next()
		}
		for row := range batch {
			item, _ := next() // there is no end of them
			read++
			if err := encode(rng, done, item, b, row); err != nil {
				return err
			}
		}
		return nil
	}, end
}

// vocabulary trains a tokenizer on a text.
func vocabulary(text iter.Seq[string], size int, special []string) (js []byte, tok tokenizer.Tokenizer, err error) {
	if js, err = unigram.Train(text, size, special); err != nil {
		return nil, nil, err
	}
	tok, err = tokenizer.Parse(js)
	return js, tok, err
}

// trainProgress prints a line every couple of seconds and fills the report's
// losses of this run, each the mean of a twentieth of the steps.
func trainProgress(w io.Writer, steps int, r *pretrainReport) pretraining.Progress {
	var began, last time.Time
	first := 0 // step of this run, later than 1 if it goes on
	share := max(1, steps/20)
	recent := 0.0
	return func(step int, loss float32) {
		if first == 0 {
			first, began, recent = step, time.Now(), float64(loss)
			last = began
			if step > 1 {
				fmt.Fprintf(w, "going on after step %d\n", step-1)
			}
		}
		if step < first+share {
			r.FirstLoss += float64(loss) / float64(min(share, steps-first+1))
		}
		if step > steps-share {
			r.LastLoss += float64(loss) / float64(min(share, steps-first+1))
		}
		recent += 0.05 * (float64(loss) - recent)
		if now := time.Now(); now.Sub(last) > 2*time.Second || step == steps {
			last = now
			left := now.Sub(began) / time.Duration(step-first+1) * time.Duration(steps-step)
			fmt.Fprintf(w, "step %d/%d  loss %.3f  %s left\n", step, steps, recent, left.Round(time.Second))
		}
	}
}

// corpusText yields the lines of files in order. What went wrong is left in
// the returned error once the sequence has been walked.
func corpusText(files []string) (iter.Seq[string], *error) {
	failed := new(error)
	return func(yield func(string) bool) {
		for _, name := range files {
			ok, err := readLines(name, yield)
			if err != nil && *failed == nil {
				*failed = err
			}
			if !ok || err != nil {
				return
			}
		}
	}, failed
}

// maxLine bounds one document of a corpus.
const maxLine = 1 << 20

func readLines(name string, yield func(string) bool) (bool, error) {
	f, err := named.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, maxLine)
	for sc.Scan() {
		if line := sc.Text(); line != "" && !yield(line) {
			return false, nil
		}
	}
	if err := sc.Err(); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}
