package jinja

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"unicode/utf8"
)

// What less common blocks, filters and methods write, and what generation blocks mark, is what jinja2 writes in
// transformers' environment (lab/bench/interop/jinjas.py).
func TestAsJinja2Does(t *testing.T) {
	data, err := os.ReadFile("testdata/jinja2.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Vars  json.RawMessage
		Cases []struct {
			Template, Want string
			Spans          [][2]int // in letters
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	for _, c := range golden.Cases {
		p, err := Parse(c.Template)
		if err != nil {
			t.Errorf("%q: %v", c.Template, err)
			continue
		}
		got, spans, err := p.Spans(t.Context(), vars(t, golden.Vars), then, Limits{})
		if err != nil || got != c.Want {
			t.Errorf("%q:\n%q, %v, want\n%q", c.Template, got, err, c.Want)
			continue
		}
		for i, s := range spans {
			spans[i] = [2]int{utf8.RuneCountInString(got[:s[0]]), utf8.RuneCountInString(got[:s[1]])}
		}
		if !slices.Equal(spans, c.Spans) || p.Generates() != (len(c.Spans) > 0) {
			t.Errorf("%q: marks %v, want %v", c.Template, spans, c.Spans)
		}
	}
}
