package predict

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/answer"
)

// AnswerChunk is the number of questions that are read before they are answered.
const AnswerChunk = 32

// Answered is a model's answer to a question.
type Answered struct {
	Line        int     `json:"line"` // of the file, from 1
	Question    string  `json:"question"`
	Answer      string  `json:"answer"`
	Probability float64 `json:"probability"` // not calibrated
}

// Answers answers the questions of a file of JSON Lines, one a line.
func Answers(ctx context.Context, to *terminal.Streams, e engine.Engine, ck *model.Checkpoint, rank int, in io.Reader, name string) error {
	r, err := answer.New(e.Backend, ck.Base, ck.Adapter.Layout(), ck.Seq)
	if err != nil {
		return fmt.Errorf("the checkpoint: %w", err)
	}
	slice := ck.Adapter.Slice(rank)
	p := predictions{to, AnswerChunk, "questions", func(examples []dataset.Example) ([]said, error) {
		replies, err := r.Answer(ctx, slice, rank, examples)
		if err != nil {
			return nil, err
		}
		out := make([]said, len(replies))
		for i, re := range replies {
			e := &examples[i]
			// An answer keeps to its line.
			out[i] = said{Answered{e.Line, e.Question, re.Text, re.Probability}, terminal.Visible(strings.Join(strings.Fields(re.Text), " "), "") + "\n"}
		}
		return out, nil
	}}
	return p.of(func(take func(dataset.Example) error) error { return dataset.Questions(in, name, take) })
}
