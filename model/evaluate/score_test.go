package evaluate

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The cases that the competition's own metric was run on.
func TestANLSAgainstTheCompetition(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "anls.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases []struct {
			GT       []string
			Pred     string
			Accuracy float64
			ANLS     float64
		}
	}
	if err == nil {
		err = json.Unmarshal(data, &golden)
	}
	if err != nil || len(golden.Cases) < 5 {
		t.Fatal(len(golden.Cases), err)
	}
	for _, c := range golden.Cases {
		if got := ANLS(c.Pred, c.GT); math.Abs(got-c.ANLS) > 1e-9 {
			t.Errorf("ANLS(%q, %q) is %v, want %v", c.Pred, c.GT, got, c.ANLS)
		}
		if got := ExactMatch(c.Pred, c.GT); got != c.Accuracy {
			t.Errorf("ExactMatch(%q, %q) is %v, want %v", c.Pred, c.GT, got, c.Accuracy)
		}
	}
}

func TestTextScores(t *testing.T) {
	for _, c := range []struct {
		answer    string
		truths    []string
		f1, exact float64
	}{
		{"EUR 12.50", []string{"eur 12.50"}, 1, 1},
		{"EUR 12.50", []string{"12.50"}, 2.0 / 3, 0},
		{"a a b", []string{"x", "a b c"}, 2.0 / 3, 0},
		{"", []string{""}, 0, 0},
	} {
		if got := TokenF1(c.answer, c.truths); math.Abs(got-c.f1) > 1e-9 {
			t.Errorf("TokenF1(%q, %q) is %v, want %v", c.answer, c.truths, got, c.f1)
		}
		if got := ExactMatch(c.answer, c.truths); got != c.exact {
			t.Errorf("ExactMatch(%q, %q) is %v", c.answer, c.truths, got)
		}
	}
	if got := ANLS("größe", []string{"grösse"}); math.Abs(got-4.0/6) > 1e-9 {
		t.Errorf("by code points: %v", got)
	}
}
