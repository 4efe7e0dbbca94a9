package evaluate

import (
	"testing"

	"github.com/starling-fl/starling/model/evaluate/answer"
)

func TestScoreReplies(t *testing.T) {
	s := ScoreReplies([]answer.Reply{{Text: "Paris", Probability: 0.5}, {Text: "in the year 1984", Probability: 1}}, [][]string{{"paris"}, {"1985", "1984"}})
	if s.ExactMatch != 0.5 || s.Confidence != 0.75 || s.TokenF1 <= 0.5 || s.TokenF1 >= 1 || s.ANLS < 0.5 {
		t.Errorf("%+v", s)
	}
}
