package commands

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/dataset/calls"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/engine/plugins"
	"github.com/starling-fl/starling/internal/named"
	"github.com/starling-fl/starling/internal/usage"
	"github.com/starling-fl/starling/lab/federation"
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

func newPretrainCmd(a *command.App) *cobra.Command {
	var (
		corpus    []string
		generated bool
		packed    bool
		out       string
		format    string
		hidden    = 64
		layers    = 2
		heads     = 0
		vocab     = 4096
		seq       = 64
		choice    = plugins.Flags()
		kind      string
		documents = defaultDocuments()
		ofCalls   = defaultCalls()
		heard     = defaultHeard()
		spec      = pretraining.DefaultEncoder(model.BERT(vocab, hidden, layers, heads, seq))
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
frames of them) that tells the labels of recordings, as starling voices writes them: of each
it hears another pace, noise, place and filter whenever it comes. The head that tells them
is thrown away.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case out == "":
				return usage.Errorf("--out is missing: the folder to write")
			case kind != "bert" && kind != "t5" && kind != "llama" && kind != "hubert":
				return usage.Errorf("--architecture is %.40q, want bert, t5, llama or hubert", kind)
			case kind == "hubert" && (generated || len(corpus) > 0):
				return usage.Errorf("--architecture hubert is trained on recordings: give --recordings DIR alone")
			case heard.from != "" && kind != "hubert":
				return usage.Errorf("--from is for --architecture hubert")
			case (kind == "hubert") != (heard.path != ""):
				return usage.Errorf("--recordings DIR is what --architecture hubert is trained on: give both")
			case kind != "hubert" && generated == (len(corpus) > 0):
				return usage.Errorf("give either --corpus FILE... or --generated")
			case kind == "t5" && !generated:
				return usage.Errorf("--architecture t5 is trained on generated documents: give --generated")
			case documents.sentinels < 0 || documents.sentinels > 100:
				return usage.Errorf("--sentinels is %d, want 0 to 100", documents.sentinels)
			case kind == "llama" && !generated:
				return usage.Errorf("--architecture llama is trained on generated commands: give --generated")
			}
			text, fileErr := corpusText(corpus)
			if generated {
				text = pretraining.PublicCorpus(generatedSeed, generatedLines)
			}
			spec.Config = model.BERT(vocab, hidden, layers, heads, seq)
			spec.Sequence = seq
			if err := spec.Config.Validate(); err != nil {
				return usage.Wrap(err)
			}
			e, err := choice.Open()
			if err != nil {
				return err
			}
			spec.Backend, spec.Engine = e.Backend, e.Name
			spec.StatePath = filepath.Join(out, pretrainState)
			r := pretrainReport{Out: out, Engine: e.Name, Steps: spec.Steps}
			began := time.Now()
			var base *model.Base
			switch kind {
			case "t5":
				if err := documents.take(cmd.Flags(), spec, hidden, layers, heads, vocab, seq); err != nil {
					return usage.Wrap(err)
				}
				if documents.tables {
					documents.Source = federation.GeneratedVersion
				}
				documents.format, documents.Backend, documents.StatePath = model.Format(format), e.Backend, spec.StatePath
				r.Steps = documents.Steps
				base, err = makeDocumentBase(cmd.Context(), documents, trainProgress(a.Stderr, documents.Steps, &r))
			case "llama":
				if err := ofCalls.take(cmd.Flags(), spec, hidden, layers, heads, vocab, seq); err != nil {
					return usage.Wrap(err)
				}
				ofCalls.format, ofCalls.Backend, ofCalls.StatePath = model.Format(format), e.Backend, spec.StatePath
				r.Steps = ofCalls.Steps
				base, err = makeCallsBase(cmd.Context(), ofCalls, trainProgress(a.Stderr, ofCalls.Steps, &r))
			case "hubert":
				if err := heard.take(cmd.Flags(), spec, hidden, layers, heads, vocab, seq); err != nil {
					return usage.Wrap(err)
				}
				heard.format, heard.Backend, heard.StatePath = model.Format(format), e.Backend, spec.StatePath
				r.Steps = heard.Steps
				base, err = makeHeardBase(cmd.Context(), heard, trainProgress(a.Stderr, heard.Steps, &r))
			default:
				base, err = pretraining.MakeBase(cmd.Context(), spec, text, model.Format(format), trainProgress(a.Stderr, spec.Steps, &r))
			}
			switch {
			case *fileErr != nil:
				err = *fileErr
			case err != nil && !errors.Is(err, context.Canceled) && len(corpus) > 0:
				err = fmt.Errorf("%s: %w", strings.Join(corpus, ", "), err)
			}
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
				r.Generator = map[string]string{"bert": dataset.GeneratorVersion, "t5": documents.Source, "llama": calls.Version}[kind]
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
	f.StringArrayVar(&corpus, "corpus", nil, "text file, one document a line (repeatable)")
	f.BoolVar(&generated, "generated", false, "train on generated public text instead of a corpus")
	f.StringVar(&kind, "architecture", "bert", "bert: an encoder; t5: an encoder with a decoder, for documents and answers; llama: a decoder; hubert: an encoder of recordings")
	f.StringVar(&heard.path, "recordings", "", "with --architecture hubert: a folder of recordings, a folder for each label")
	f.StringVar(&heard.from, "from", "", "with --architecture hubert: a base's folder, which is trained further")
	f.IntVar(&documents.Answer, "answer", documents.Answer, "with --architecture t5: tokens that are written at most while training")
	f.BoolVar(&documents.patches, "patches", false, "with --architecture t5: boxes by a linear map, and the page's picture as patches (Federated DocVQA)")
	f.BoolVar(&documents.tables, "tables", false, "with --architecture t5: generated tables with questions and with statements beside invoices")
	f.IntVar(&documents.sentinels, "sentinels", 0, "with --architecture t5: special tokens for so many hidden tokens of each objective of task pretrain, at most 100 (0: 4, 3 and 2)")
	f.StringVar(&out, "out", "", "folder to write")
	f.StringVar(&format, "format", string(model.NF4), "how matrices are stored: nf4, bf16 or f32")
	f.BoolVar(&packed, "packed", false, "with --format nf4: write the 4-bit codes themselves, an eighth of the size, which no other program reads")
	f.IntVar(&hidden, "hidden", hidden, "width")
	f.IntVar(&layers, "layers", layers, "layers")
	f.IntVar(&heads, "heads", heads, "attention heads (0: one for 32 columns)")
	f.IntVar(&vocab, "vocab", vocab, "vocabulary size")
	f.IntVar(&seq, "seq", seq, "tokens of a row, and the positions of the base")
	f.IntVar(&spec.Batch, "batch", spec.Batch, "rows of a step")
	f.IntVar(&spec.Steps, "steps", spec.Steps, "training steps")
	f.Float64Var(&spec.LearningRate, "lr", spec.LearningRate, "peak learning rate")
	f.Uint64Var(&spec.Seed, "seed", spec.Seed, "seed of initialisation, order and masks")
	return cmd
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
