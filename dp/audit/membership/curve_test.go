package membership

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// scikit-learn's curves and scipy's Mann-Whitney test, by testdata/goldens.py.
func TestFiguresAreScikitLearns(t *testing.T) {
	var cases []struct {
		Member      []bool    `json:"member"`
		Score       []float64 `json:"score"`
		Weight      []float64 `json:"weight"`
		AUC         float64   `json:"auc"`
		TPR         float64   `json:"tpr"`
		WeightedAUC float64   `json:"weighted_auc"`
		WeightedTPR float64   `json:"weighted_tpr"`
		P           float64   `json:"p"`
	}
	b, err := os.ReadFile("testdata/curves.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		units := make([]int, len(c.Member))
		for k := range units {
			units[k] = k
		}
		s := ranked(units, c.Member, c.Score, c.Member)
		for name, x := range map[string][2]float64{
			"area":          {s.figures(nil).AUC, c.AUC},
			"TPR":           {s.figures(nil).TPR, c.TPR},
			"weighted area": {s.figures(c.Weight).AUC, c.WeightedAUC},
			"weighted TPR":  {s.figures(c.Weight).TPR, c.WeightedTPR},
			"p":             {s.chance(), c.P},
		} {
			if math.Abs(x[0]-x[1]) > 1e-9 {
				t.Errorf("case %d: %s is %v, scikit-learn's and scipy's %v", i, name, x[0], x[1])
			}
		}
	}
	if len(cases) < 5 {
		t.Errorf("%d cases", len(cases))
	}
}

// Accuracy is of all, balanced accuracy of members and others alike.
func TestAccuracies(t *testing.T) {
	member := []bool{true, false, false, false, false}
	s := ranked([]int{0, 1, 2, 3, 4}, member, make([]float64, 5), make([]bool, 5)) // says that nobody is
	if f := s.figures(nil); f.Accuracy != 0.8 || f.Balanced != 0.5 || f.AUC != 0.5 || f.TPR != 0 {
		t.Errorf("%+v", f)
	}
	if p := s.chance(); p != 1 {
		t.Errorf("scores that are all one are told from chance: %v", p)
	}
}

// The interval of an area holds the truth as often as it says: of 200 samples of two normal
// distributions one apart, whose area is Phi(1/sqrt 2) = .7602, fewer than 180 miss less often
// than once in 3,000 if 95 % are right.
func TestIntervalsHold(t *testing.T) {
	const truth, trials = 0.760250, 200
	held := 0
	for seed := range uint64(trials) {
		units, score := drawn(seed, 60, 1)
		member, said, at := membership(units), make([]bool, len(units)), make([]int, len(units))
		for i := range at {
			at[i] = i
		}
		if got := intervals([]scored{ranked(at, member, score, said)}, member, seed).AUC; got.Low <= truth && truth <= got.High {
			held++
		}
	}
	if held < 180 {
		t.Errorf("%d of %d intervals hold the truth, want 95 %%", held, trials)
	}
}
