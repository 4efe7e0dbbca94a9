package report

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/lab/canvas"
	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/simulate"
)

// sound is a small syntax test of LaTeX: braces, brackets and environments close in their
// order, and nothing but ASCII is outside of what an author named.
func sound(t *testing.T, name string, text []byte) {
	t.Helper()
	var open []string
	pop := func(want string) {
		if len(open) == 0 || open[len(open)-1] != want {
			t.Fatalf("%s: %s closes %v", name, want, open)
		}
		open = open[:len(open)-1]
	}
	comment := regexp.MustCompile(`(^|[^\\])%.*`)
	token := regexp.MustCompile(`\\begin\{(\w+)\}|\\end\{(\w+)\}|\\.|[{}\[\]]`)
	for line := range strings.Lines(string(text)) {
		for _, m := range token.FindAllStringSubmatch(comment.ReplaceAllString(line, "$1"), -1) {
			switch {
			case m[1] != "":
				open = append(open, m[1])
			case m[2] != "":
				pop(m[2])
			case m[0] == "{" || m[0] == "[":
				open = append(open, m[0])
			case m[0] == "}":
				pop("{")
			case m[0] == "]":
				pop("[")
			}
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: %v stay open", name, open)
	}
}

// TestFiguresForLaTeX: the documents are sound, hold the means and Student's intervals,
// and compile where a LaTeX with pgfplots is at hand.
func TestFiguresForLaTeX(t *testing.T) {
	r, err := New(IntervalT, grid(t))
	ok(t, err)
	for _, p := range r.Plots {
		sound(t, p.Name, p.TeX)
	}
	i := slices.IndexFunc(r.Plots, func(p Plot) bool { return p.Name == "privacy-utility" })
	text := string(r.Plots[i].TeX)
	compile(t, r.Plots[i])
	// Five seeds 0.05 apart around 0.75: 2.7764 * 7.9057 / sqrt(5) points.
	row := regexp.MustCompile(`\n  1 75 ([\d.]+) ([\d.]+) 5\n`).FindStringSubmatch(text)
	if row == nil {
		t.Fatalf("no mark of B at epsilon 1:\n%s", text)
	}
	for _, end := range row[1:] {
		if v, err := strconv.ParseFloat(end, 64); err != nil || math.Abs(v-9.8162) > 1e-3 {
			t.Errorf("whisker of %s points, want 9.816", end)
		}
	}
	for _, form := range [][]byte{r.Plots[i].TeX, r.Plots[i].SVG} {
		if !strings.Contains(string(form), "n = 5 seeds") {
			t.Error("the figure does not say of how many seeds its means are")
		}
	}
}

// compile runs a LaTeX that is at hand; one without the packages is none.
func compile(t *testing.T, p Plot) {
	t.Helper()
	tex, err := exec.LookPath("pdflatex")
	if err != nil {
		return
	}
	if exec.CommandContext(watchdog.Context(t), "kpsewhich", "pgfplots.sty", "standalone.cls").Run() != nil {
		return
	}
	dir := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, "figure.tex"), p.TeX, 0o600))
	cmd := exec.CommandContext(watchdog.Context(t), tex, "-interaction=nonstopmode", "-halt-on-error", "figure.tex")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", p.Name, err, out[max(0, len(out)-1500):])
	}
}

// run is a simulation's record, as far as it is drawn.
func run(seed uint64, ranks ...int) *sweep.Record {
	r := &sweep.Record{Epsilon: 2, Validation: 0.8 + 0.01*float64(seed)}
	for v := 1; v <= 10; v++ {
		round := simulate.Round{Number: v, BytesUp: 600, BytesDown: 400}
		if v%4 == 0 {
			round.Accuracy, round.Epsilon = []simulate.RankAccuracy{{Rank: 1, Accuracy: 0.05 * float64(v)}}, 0.2*float64(v)
		}
		r.Curve = append(r.Curve, round)
	}
	for _, k := range ranks {
		r.ByRank = append(r.ByRank, simulate.RankAccuracy{Rank: k, Accuracy: 0.5 + 0.01*float64(k)})
	}
	return r
}

// TestRunsAreDrawn: accuracy against epsilon, bytes and rank, each where there is some.
func TestRunsAreDrawn(t *testing.T) {
	one, err := Runs([]*sweep.Record{run(1, 1, 4, 8)})
	ok(t, err)
	three, err := Runs([]*sweep.Record{run(1, 1, 4, 8), run(2, 1, 4, 8), run(3, 1, 4, 8)})
	ok(t, err)
	for _, p := range []Plot{one, three} {
		sound(t, p.Name, p.TeX)
		for _, title := range []string{"epsilon spent", "bytes of one device", "rank"} {
			if !strings.Contains(string(p.SVG), ">"+title) || !strings.Contains(string(p.TeX), "xlabel={"+title) {
				t.Errorf("no axis %q", title)
			}
		}
	}
	compile(t, three)
	// Epsilon 0.8, 1.6 and 2; 4, 8 and 10 kB.
	for _, mark := range []string{"\n  0.8 20 0 0 3\n", "\n  1.6 40 0 0 3\n", "\n  2 82 2.48", "\n  4000 20 ", "\n  10000 82 ", "\n  4 54 0 0 3\n"} {
		if !strings.Contains(string(three.TeX), mark) {
			t.Errorf("no mark %q:\n%s", mark, three.TeX)
		}
	}
	if !strings.Contains(one.Caption, "One seed") || !strings.Contains(three.Caption, "n = 3 seeds") {
		t.Errorf("captions %q, %q", one.Caption, three.Caption)
	}
	free := run(1, 4)
	free.Epsilon = 0
	for i := range free.Curve {
		free.Curve[i].Epsilon = 0
	}
	p, err := Runs([]*sweep.Record{free})
	ok(t, err)
	if strings.Contains(string(p.TeX), "epsilon") || strings.Contains(string(p.TeX), "xlabel={rank") || !strings.Contains(string(p.TeX), "xlabel={bytes") {
		t.Error("without noise there is no epsilon, and of one rank no curve")
	}
	free.Curve = free.Curve[:3]
	if _, err := Runs([]*sweep.Record{free}); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing was measured: %v", err)
	}
}

// TestNumbersOfAxes: values that are numbers after the same words are an axis of numbers.
func TestNumbersOfAxes(t *testing.T) {
	for in, want := range map[string]string{
		"1,2,8": " [1 2 8]", "epsilon 2,epsilon 1000": "epsilon [2 1000]", "r=01,r=16": "r [1 16]", "0.1,1000": " [0.1 1000]",
		"DyLoRA,LoRA": "no", "1 LoRA,2 tuned": "no", "7": "no", "r=1,s=2": "no", "NaN,Inf": "no",
	} {
		words, x, found := numbers(strings.Split(in, ","))
		got := "no"
		if found {
			got = fmt.Sprintf("%s %v", words, x)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"LoRA r=16": "16", "DP-LoRA (r=08)": "8", "eps 2, rank 4": "4", "adapter.rank_max 16": "16", "Dirichlet 2": "", "for 16": ""} {
		got := ""
		if m := rankSaid.FindStringSubmatch(in); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("the rank in %q is %q, want %q", in, got, want)
		}
	}
}

// TestSignalToNoiseByRank: where an axis changes how many values are trained, the figure's
// second part is signal over noise, in decibels, and adapters of one rank each are a series.
func TestSignalToNoiseByRank(t *testing.T) {
	r := &Report{Axes: []sweep.Axis{{Name: "budget", Values: []string{"epsilon 2", "none"}}, {Name: "rank", Values: []string{"r=01", "r=16"}}}}
	for _, budget := range r.Axes[0].Values {
		for i, rank := range r.Axes[1].Values {
			one := &sweep.Record{Accuracy: 0.5, SignalNorm: 1, NoiseNorm: []float64{0.1, 1}[i], ByRank: []simulate.RankAccuracy{{Rank: []int{1, 16}[i], Accuracy: 0.6}}}
			c := &Cell{On: map[string]string{"budget": budget, "rank": rank}, Values: []int{1000, 9000}[i], Signal: 1, Noise: one.NoiseNorm,
				runs: map[string]*sweep.Record{"1": one}}
			if budget == "none" {
				c.Noise, one.NoiseNorm = 0, 0
			}
			r.Cells = append(r.Cells, c)
		}
	}
	charts := r.byAxes()
	if len(charts) != 2 || charts[0].name != "accuracy-by-rank" || charts[1].name != "signal-to-noise-by-rank" || len(charts[0].series) != 2 {
		t.Fatalf("%+v", charts)
	}
	if s := charts[1].series; len(s) != 1 || s[0].points[0].y != 20 || s[0].points[1].y != 0 || s[0].points[1].x != 16 {
		t.Errorf("signal to noise: %+v", s)
	}
	c, found := r.byRank()
	if !found || len(c.series) != 2 || c.series[0].name != "epsilon 2" || len(c.series[0].points) != 2 {
		t.Errorf("by rank: %+v", c)
	}
}

// TestTicksDivideEvenly: some 4 to 8 round numbers, none outside.
func TestTicksDivideEvenly(t *testing.T) {
	for want, r := range map[string][2]float64{
		"[20 40 60 80 100]": {17.3, 108}, "[1.6 1.7 1.8 1.9 2]": {1.55, 2}, "[20000 40000 60000 80000]": {8000, 95000}, "[1 2 3 4 5 6 7 8]": {1, 8},
		"[80.4 80.6 80.8 81 81.2]": {80.35, 81.25}, "[-10 -5 0 5 10]": {-12, 12},
	} {
		var got []string
		for _, v := range canvas.Evenly(r[0], r[1]) {
			got = append(got, decimal(v))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%v: %v, want %s", r, got, want)
		}
	}
	if n := len(canvas.Evenly(5, 5)); n > 8 {
		t.Errorf("a range without width has %d ticks", n)
	}
}

// TestTicksOfNextToEqualValues: bytes that differ by a few are no seven ticks of one name.
func TestTicksOfNextToEqualValues(t *testing.T) {
	c := chart{series: []series{{points: []mark{{x: 681_800}, {x: 681_870}}}}}.scaled()
	names := map[string]bool{}
	for _, v := range c.places() {
		names[canvas.Named(v)] = true
	}
	if n := len(c.places()); n < 4 || len(names) != n {
		t.Errorf("ticks at %v are called %v", c.places(), names)
	}
	if least, most := c.seen(); least > 681_800 || most < 681_870 {
		t.Errorf("%v to %v leaves a value out", least, most)
	}
}
