package bench

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/edge/leak"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// A job's round is made for a tiny base, too: as it is but for the base and the length of
// its texts. One over a base that the tiny one is not like is refused.
func TestTinyRound(t *testing.T) {
	round := func(text string) *Round {
		t.Helper()
		file := filepath.Join(t.TempDir(), "job.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := Config{Job: file}
		b, err := f.FromFile(t.Context(), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := round("name: tiny\nlabels: [a, b, c]\nadapter: {rank_min: 1, rank_max: 4, sequence: 48}\ntraining: {steps: 1, batch: 2}\nwire: {uplink: int5}\n")
	tiny, err := b.tiny(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tiny.Sequence != leak.TinySequence || tiny.Rank != 4 || tiny.Layout.Classes != 3 || tiny.Uplink != "int5" || tiny.Base.Config.HiddenSize >= b.Base.Config.HiddenSize || b.Sequence != 48 {
		t.Errorf("%+v", tiny.Trial)
	}
	p := edge.NewProgramTrainer(1)
	r, err := leak.Check(watchdog.Context(t), tiny.settings(p), leak.Options{Trials: 2, Tries: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if a, ok := r.Worst(leak.Tokens); !ok || a.All == 0 {
		t.Errorf("%+v", r)
	}
	if _, err := round("name: tiny\ntask: answer\ntraining: {steps: 1, batch: 1}\n").tiny(t.Context()); err == nil {
		t.Error("a base that answers is like an encoder")
	}
}

// A kernel that was faster than the one that join uses is named, and one that was as fast is not.
func TestTheFasterKernelIsNamed(t *testing.T) {
	for _, c := range []struct {
		other float64
		says  bool
	}{{0.8, true}, {0.98, false}, {2, false}} {
		r := Report{Kernels: []Kernel{{Name: "avx512", Step: 1}, {Name: "avx2", Step: c.other}, {Name: "plain", Step: 3}}}
		var b strings.Builder
		if err := r.Print(&b); err != nil || strings.Contains(b.String(), "avx2 was faster here, by 25 %: join uses avx512 all the same") != c.says {
			t.Errorf("%v: %v, %s", c.other, err, &b)
		}
	}
}
