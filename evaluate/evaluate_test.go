package evaluate

import (
	"testing"
)

func TestScoreReplies(t *testing.T) {
	s := ScoreReplies([]Reply{{"Paris", 0.5}, {"in the year 1984", 1}}, [][]string{{"paris"}, {"1985", "1984"}})
	if s.ExactMatch != 0.5 || s.Confidence != 0.75 || s.TokenF1 <= 0.5 || s.TokenF1 >= 1 || s.ANLS < 0.5 {
		t.Errorf("%+v", s)
	}
}
