package kmeans

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// scikit-learn's, by dp/audit/membership/testdata/goldens.py: one run from the first two points,
// and the best of fifty.
func TestIsScikitLearns(t *testing.T) {
	var g struct {
		Points  [][]float64  `json:"points"`
		Centres [2][]float64 `json:"centres"`
		Of      []int        `json:"of"`
		Inertia float64      `json:"inertia"`
		Best    float64      `json:"best"`
	}
	b, err := os.ReadFile("testdata/kmeans.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	c := Lloyd(g.Points, [2][]float64{g.Points[0], g.Points[1]})
	for k := range c.Centres {
		if Distance(c.Centres[k], g.Centres[k]) > 1e-20 {
			t.Errorf("centre %d at %v, scikit-learn's at %v", k, c.Centres[k], g.Centres[k])
		}
	}
	for i := range g.Of {
		if c.Of[i] != g.Of[i] {
			t.Errorf("point %d is of %d, scikit-learn's of %d", i, c.Of[i], g.Of[i])
		}
	}
	if math.Abs(c.Inertia-g.Inertia) > 1e-9 {
		t.Errorf("inertia %v, scikit-learn's %v", c.Inertia, g.Inertia)
	}
	for seed := range uint64(50) {
		if best, err := Cluster(g.Points, seed); err != nil || math.Abs(best.Inertia-g.Best) > 1e-9 {
			t.Errorf("seed %d: inertia %v, scikit-learn's best %v, %v", seed, best.Inertia, g.Best, err)
		}
	}
}

func TestPoints(t *testing.T) {
	for _, bad := range [][][]float64{nil, {{1}}, {{1}, {1, 2}}, {{}, {}}, {{1}, {math.NaN()}}, {{math.Inf(1)}, {1}}} {
		if _, err := Cluster(bad, 1); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	c, err := Cluster([][]float64{{3}, {3}, {3}}, 1)
	if err != nil || c.Inertia != 0 {
		t.Errorf("points that are all one: %+v, %v", c, err)
	}
}
