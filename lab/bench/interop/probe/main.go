// Command probe answers what lab/bench/interop/check.py asks of Starling: the ids of
// texts, a checkpoint's logits, the gradient of its loss. One request in JSON on
// standard input, one answer on standard output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/gomlx/compute"

	_ "github.com/gomlx/compute/gobackend" // the reference

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/wasm/compiler"
)

type request struct {
	Op         string      `json:"op"` // "ids", "logits", "gradient", "answers" or "fit"
	Checkpoint string      `json:"checkpoint"`
	Base       string      `json:"base"` // of "ids"
	Rank       int         `json:"rank"`
	Method     string      `json:"method"` // of "gradient": instead of the checkpoint's own
	Texts      []string    `json:"texts"`
	Tokens     [][]int32   `json:"tokens"` // rows of one length
	Labels     []int32     `json:"labels"`
	Pixels     [][]float32 `json:"pixels"` // images in place of tokens: [channels, height, width], 0..1

	Files    []string  `json:"files"`    // of images in place of both
	Pictures []picture `json:"pictures"` // of "fit"

	Places [][]int32 `json:"places"` // of masked tokens; labels are theirs, of one row after another

	Types [][]int32 `json:"types"` // of spans: the segment of each token; labels are begin and end of each row

	// Of a base that writes text: as many as the tokens of an answer in each row.
	Native  bool        `json:"native"` // on GoMLX's backend instead of the compiled program
	Boxes   [][][]int32 `json:"boxes"`
	Patches [][]float32 `json:"patches"`
	Decoder [][]int32   `json:"decoder"`
	Targets [][]int32   `json:"targets"` // -100: left out
}

func main() {
	if err := answer(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func answer(in io.Reader, out io.Writer) error {
	var r request
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return err
	}
	var v any
	var err error
	switch r.Op {
	case "ids":
		v, err = ids(r)
	case "logits":
		v, err = logits(r)
	case "gradient":
		v, err = gradient(r)
	case "answers":
		v, err = answers(r)
	case "fit":
		v, err = fit(r)
	default:
		err = fmt.Errorf("op is %q", r.Op)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(v)
}

func ids(r request) ([][]int32, error) {
	data, err := tokenizerOf(r.Base)
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		return nil, err
	}
	out := make([][]int32, len(r.Texts))
	for i, text := range r.Texts {
		out[i] = append([]int32{}, tok.Encode(text)...)
	}
	return out, nil
}

// tokenizerOf reads a tokenizer's own file, or that of a base's folder.
func tokenizerOf(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return os.ReadFile(path)
	}
	b, err := model.LoadBaseDir(path)
	if err != nil {
		return nil, err
	}
	return b.Tokenizer, nil
}

func logits(r request) ([][]float32, error) {
	ck, err := model.ReadCheckpoint(r.Checkpoint)
	if err != nil {
		return nil, err
	}
	if ck.Adapter.Layout().Method.Task == model.TaskAnswer {
		return forced(r, ck)
	}
	p, err := nn.NewPredictor(ck.Adapter.Layout(), ck.Base, r.seq(), compiler.New())
	if err != nil {
		return nil, err
	}
	rows, n, err := r.rows(ck.Adapter.Layout())
	if err != nil {
		return nil, err
	}
	return p.Outputs(context.Background(), ck.Adapter.Slice(r.Rank), r.Rank, rows, n)
}

// seq is the length of the rows of tokens.
func (r request) seq() int {
	if len(r.Tokens) == 0 {
		return 1
	}
	return len(r.Tokens[0])
}

// rows are the request's examples in a layout's columns.
func (r request) rows(lay *model.Layout) (task.Batch, int, error) {
	if lay.Method.Task == model.TaskAnswer {
		b, err := columns(r, lay)
		return b, len(r.Tokens), err
	}
	columns, err := task.Columns(lay, r.seq())
	if err != nil {
		return nil, 0, err
	}
	n := max(len(r.Tokens), len(r.Pixels), len(r.Files))
	b := task.NewBatch(columns, n)
	for i, row := range r.Tokens {
		copy(b.Int32(task.Tokens)[i*len(row):], row)
	}
	if images, err := r.images(lay); err != nil {
		return nil, 0, err
	} else if len(images) > 0 {
		k, err := task.New(&model.Base{Config: lay.Config}, lay, 1)
		if err != nil {
			return nil, 0, err
		}
		for i, m := range images {
			if err := k.Encode(&dataset.Example{Image: m}, b, i); err != nil {
				return nil, 0, err
			}
		}
	}
	for i, row := range r.Places {
		copy(b.Int32(task.Places)[i*len(row):], row)
	}
	for i, row := range r.Types {
		copy(b.Int32(task.Types)[i*len(row):], row)
	}
	for i, row := range r.Boxes {
		for j, box := range row {
			copy(b.Int32(task.Boxes)[4*(i*len(row)+j):], box)
		}
	}
	if lay.Method.Task == model.TaskSpan {
		for i, at := range r.Labels {
			b.Float32(task.Labels)[2*(i/2*r.seq()+int(at))+i%2], b.Float32(task.Weights)[i/2] = 1, 1
		}
		return b, n, nil
	}
	if all := b.Float32(task.Labels); all != nil { // of each label whether it is right
		for i, x := range r.Labels {
			all[i] = float32(x)
		}
		for i := range b.Float32(task.Weights) {
			b.Float32(task.Weights)[i] = 1
		}
		return b, n, nil
	}
	copy(b.Int32(task.Labels), r.Labels)
	for i := range b.Float32(task.Weights) {
		if l := b.Int32(task.Labels); l[i] < 0 {
			l[i] = 0 // left out
			continue
		}
		b.Float32(task.Weights)[i] = 1
	}
	return b, n, nil
}

// gradient is by tensor: a step of plain descent at rate 1 moves by minus it.
func gradient(r request) (map[string][]float32, error) {
	ck, err := model.ReadCheckpoint(r.Checkpoint)
	if err != nil {
		return nil, err
	}
	lay, start := ck.Adapter.Layout(), ck.Adapter.Slice(r.Rank)
	if r.Method != "" { // the checkpoint's head, and nothing else changed
		head := start[len(start)-lay.HeadSize():]
		m := model.Method{RMax: 1, Alpha: 1, Kind: model.MethodKind(r.Method), Task: lay.Method.Task}
		if lay, err = model.NewLayout(lay.Config, m, lay.Classes); err != nil {
			return nil, err
		}
		start = append(make([]float32, lay.Size(r.Rank)-len(head)), head...)
	}
	batch, n, err := r.rows(lay)
	if err != nil {
		return nil, err
	}
	step, err := nn.NewTrainer(nn.StepSpec{Config: lay.Config, Method: lay.Method, Classes: lay.Classes, Rank: r.Rank,
		Spec: training.Spec{Batch: n, Optimizer: training.SGD}, Sequence: r.seq()}, ck.Base)
	if err != nil {
		return nil, err
	}
	delta, losses, err := step.Train(context.Background(), start, []trainer.Batch{batch}, 1)
	if err != nil {
		return nil, err
	}
	out := map[string][]float32{"loss": losses}
	for _, s := range lay.Spans(r.Rank) {
		g := make([]float32, s.Len)
		for i := range g {
			g[i] = -delta[s.Offset+i]
		}
		out[s.Name] = g
	}
	return out, nil
}

// columns writes the request's rows into the columns of answers.
func columns(r request, lay *model.Layout) (task.Batch, error) {
	all, err := task.Columns(lay, len(r.Tokens[0]))
	if err != nil {
		return nil, err
	}
	batch := task.NewBatch(all, len(r.Tokens))
	rows := func(name string, from [][]int32) {
		for i, row := range from {
			copy(batch.Int32(name)[i*len(row):], row)
		}
	}
	rows(task.Tokens, r.Tokens)
	rows(task.DecoderTokens, r.Decoder)
	rows(task.Labels, r.Targets)
	for i, id := range batch.Int32(task.Labels) {
		if id >= 0 && len(r.Targets) > 0 {
			batch.Float32(task.Weights)[i] = 1
		} else {
			batch.Int32(task.Labels)[i] = 0
		}
	}
	for i, row := range r.Boxes {
		for j, box := range row {
			copy(batch.Int32(task.Boxes)[4*(i*len(row)+j):], box)
		}
	}
	for i, row := range r.Patches {
		copy(batch.Float32(task.Patches)[i*len(row):], row)
	}
	return batch, nil
}

// generator answers on the backend that the request asks for.
func generator(r request, ck *model.Checkpoint) (*nn.Generator, task.Batch, error) {
	lay := ck.Adapter.Layout()
	batch, err := columns(r, lay)
	if err != nil {
		return nil, nil, err
	}
	var backend compute.Backend
	if !r.Native {
		backend = compiler.New()
	}
	g, err := nn.NewGenerator(lay, ck.Base, len(r.Tokens[0]), backend)
	return g, batch, err
}

// forced are the logits at every place of given answers.
func forced(r request, ck *model.Checkpoint) ([][]float32, error) {
	g, batch, err := generator(r, ck)
	if err != nil {
		return nil, err
	}
	return g.Logits(context.Background(), ck.Adapter.Slice(r.Rank), r.Rank, batch)
}

func answers(r request) ([]nn.Answer, error) {
	ck, err := model.ReadCheckpoint(r.Checkpoint)
	if err != nil {
		return nil, err
	}
	g, batch, err := generator(r, ck)
	if err != nil {
		return nil, err
	}
	return g.Answers(context.Background(), ck.Adapter.Slice(r.Rank), r.Rank, batch)
}
