package forest

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// golden is scikit-learn's, by dp/audit/membership/testdata/goldens.py.
type golden struct {
	Rows      [][]float64 `json:"rows"`
	Positive  []bool      `json:"positive"`
	Test      [][]float64 `json:"test"`
	Truth     []bool      `json:"truth"`
	Tree      []float64   `json:"tree"`
	Mean      float64     `json:"auc_mean"`
	Deviation float64     `json:"auc_deviation"`
}

func load(t *testing.T) (g golden) {
	t.Helper()
	b, err := os.ReadFile("testdata/forest.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// One tree of all rows and all features has nothing random: it says of every row what
// scikit-learn's says.
func TestTreeIsScikitLearns(t *testing.T) {
	g := load(t)
	f, err := Grow(g.Rows, g.Positive, Config{Trees: 1, Depth: 3, Leaf: 5, Features: 4, Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range g.Test {
		if got := f.Probability(row); math.Abs(got-g.Tree[i]) > 1e-12 {
			t.Fatalf("row %d: %v, scikit-learn has %v", i, got, g.Tree[i])
		}
	}
}

// A forest is as good as scikit-learn's: the mean area of 20 seeds differs by less than four
// standard errors of both, which a sound one exceeds once in 16,000.
func TestForestIsAsGood(t *testing.T) {
	g := load(t)
	var areas []float64
	for seed := range uint64(20) {
		f, err := Grow(g.Rows, g.Positive, Config{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		var in, out []float64
		for i, row := range g.Test {
			if p := f.Probability(row); g.Truth[i] {
				in = append(in, p)
			} else {
				out = append(out, p)
			}
		}
		wins := 0.0
		for _, a := range in {
			for _, b := range out {
				switch {
				case a > b:
					wins++
				case a == b:
					wins += 0.5
				}
			}
		}
		areas = append(areas, wins/float64(len(in)*len(out)))
	}
	mean := 0.0
	for _, a := range areas {
		mean += a / float64(len(areas))
	}
	if off := math.Abs(mean - g.Mean); off > 4*g.Deviation*math.Sqrt(2.0/20) {
		t.Errorf("mean area %.4f, scikit-learn's %.4f with a deviation of %.4f over seeds", mean, g.Mean, g.Deviation)
	}
	if slices.Max(areas) == slices.Min(areas) {
		t.Error("seeds change nothing")
	}
}

func TestForestRefuses(t *testing.T) {
	for name, rows := range map[string][][]float64{"none": nil, "no numbers": {{}}, "ragged": {{1, 2}, {1}}, "NaN": {{math.NaN()}}, "infinite": {{math.Inf(1)}}} {
		if _, err := Grow(rows, make([]bool, len(rows)), Config{}); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	if _, err := Grow([][]float64{{1}}, nil, Config{}); err == nil {
		t.Error("a row without a class was taken")
	}
}

// Rows that are all one, and neighbours among the floats, end.
func TestForestOfEqualRows(t *testing.T) {
	f, err := Grow([][]float64{{1, 1}, {1, 1}, {1, 1}, {1, 1}}, []bool{true, false, false, false}, Config{Whole: true})
	if err != nil || f.Probability([]float64{1, 1}) != 0.25 {
		t.Errorf("%v, %v", f.Probability([]float64{1, 1}), err)
	}
	next := math.Nextafter(1, 2)
	if f, err = Grow([][]float64{{1}, {next}}, []bool{false, true}, Config{Whole: true, Trees: 1}); err != nil || f.Probability([]float64{1}) != 0 || f.Probability([]float64{next}) != 1 {
		t.Error("neighbours are not told apart")
	}
}
