//go:build !js

package edge

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/job/training"
)

// offers puts a program and what is told of the job where a device asks for them.
func (h *house) offers(about any, programs any) {
	h.t.Helper()
	a, err := json.Marshal(about)
	ok(h.t, err)
	p, err := json.Marshal(programs)
	ok(h.t, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blobs["/v1/job"], h.blobs["/v1/job/programs"] = a, p
}

// A quote runs the job's own program and asks for neither base nor anything else.
func TestQuoteRunsTheProgram(t *testing.T) {
	h := newHouse(t)
	base := tinyBase(t)
	for name, nf4 := range map[string]bool{"plain": false, "codes": true} {
		code := compile(t, step(base, 2, training.AdamW), nf4)
		ref := h.blob(code)
		h.offers(map[string]any{"base_bytes": 1234, "round": RoundSize{Batch: 2, Steps: 100, Epochs: 3, Down: 400, Up: 90}},
			[]offered{{Host: "another", SHA256: strings.Repeat("0", 64), Size: 1}, {Host: host, SHA256: fmt.Sprintf("%x", ref.SHA256), Size: ref.Size}})
		h.gets = nil
		began := time.Now()
		q, err := AskQuote(t.Context(), h.config(nil), 1, 50*time.Millisecond)
		ok(t, err)
		took := time.Since(began).Seconds()
		if !(q.Step > 0 && q.Start >= 0 && q.Start+q.Step < took+1e-3) || q.Memory < 1<<16 || q.Base != 1234 {
			t.Errorf("%s: %+v in %v s", name, q, took)
		}
		if len(h.gets) != 3 {
			t.Errorf("%s: %d requests, want job, programs and program", name, len(h.gets))
		}
		// Three passes over five examples are nine steps of two.
		if got := q.Work(5); got != 9*q.Step {
			t.Errorf("%s: %v s of work, want %v", name, got, 9*q.Step)
		}
		if got := q.Work(5000); got != 100*q.Step {
			t.Errorf("%s: %v s of work, want the job's most, %v", name, got, 100*q.Step)
		}
	}
}

// What a coordinator says of its job and its programs is bounded, and what it sends is run
// within the owner's limits.
func TestQuoteIsBounded(t *testing.T) {
	h := newHouse(t)
	code := compile(t, step(tinyBase(t), 2, training.SGD), false)
	ref := h.blob(code)
	fits := map[string]any{"round": RoundSize{Batch: 2, Steps: 1}}
	right := []offered{{Host: host, SHA256: fmt.Sprintf("%x", ref.SHA256), Size: ref.Size}}
	cases := map[string]struct {
		about, programs any
		want            string
	}{
		"no job":            {"nothing", right, "/v1/job"},
		"no batch":          {map[string]any{}, right, "batch of 0"},
		"a greedy batch":    {map[string]any{"round": RoundSize{Batch: 1 << 20}}, right, "batch of 1048576"},
		"no programs":       {fits, []offered{}, "empty"},
		"no list":           {fits, "x", "programs"},
		"a long list":       {fits, slices.Repeat(right, 100), "more than 4096 bytes"},
		"no hash":           {fits, []offered{{Host: host, SHA256: "xyz"}}, "sha256"},
		"nowhere":           {fits, []offered{{Host: host, SHA256: strings.Repeat("0", 64), Size: 3}}, "program"},
		"other bytes":       {fits, []offered{{Host: host, SHA256: fmt.Sprintf("%x", ref.SHA256), Size: ref.Size - 1}}, "program"},
		"a greedy download": {fits, []offered{{Host: host, SHA256: fmt.Sprintf("%x", ref.SHA256), Size: 1 << 40}}, "limit"},
	}
	for name, c := range cases {
		h.offers(c.about, c.programs)
		_, err := AskQuote(t.Context(), h.config(nil), 1, time.Millisecond)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	bound := proof{batch: 2, rows: 2, step: 2 * longestTrial}
	if err := bound.tooLong(1); !errors.Is(err, ErrLongTrial) {
		t.Errorf("a step of twenty seconds: %v", err)
	}
	if err := bound.tooLong(0); err != nil {
		t.Errorf("no step: %v", err)
	}
}

func FuzzOfferedPrograms(f *testing.F) {
	f.Add([]byte(`[{"host":"v8","sha256":"` + strings.Repeat("ab", 32) + `","size":7}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var list []offered
		if len(b) > mostOffered || json.Unmarshal(b, &list) != nil {
			return
		}
		if ref, err := chooseOffered(list); err == nil && !slices.ContainsFunc(list, func(p offered) bool {
			return strings.EqualFold(p.SHA256, fmt.Sprintf("%x", ref.SHA256)) && p.Size == ref.Size
		}) {
			t.Fatalf("%+v is none of %+v", ref, list)
		}
	})
}
