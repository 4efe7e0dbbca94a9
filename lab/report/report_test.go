package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/palette"
	"github.com/starling-fl/starling/lab/canvas"
	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/simulate"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// grid writes a folder as sweep does, its figures made up: method A is better
// than B by 2 points for every seed, and the seeds differ by much more.
func grid(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	p, err := sweep.Parse(strings.NewReader(`
name: made up <b>&_
vary:
  method:
    A_1: {adapter.rank_min: 1, adapter.rank_max: 8}
    B: {adapter.rank_min: 8, adapter.rank_max: 8}
  privacy.epsilon: [1, 2, 8]
compare: {method: B}
seeds: [1, 2, 3, 4, 5]
`), "")
	ok(t, err)
	ok(t, new(sweep.Lab).Keep(p, dir))
	for _, at := range p.Points {
		id, err := at.Settings.ID()
		ok(t, err)
		var epsilon, seed float64
		fmt.Sscan(at.On["privacy.epsilon"], &epsilon)
		fmt.Sscan(at.On["seed"], &seed)
		r := sweep.Record{ID: id, On: at.On, Settings: at.Settings, Engine: "program", Version: "v1", Base: strings.Repeat("ab", 32), Data: "x",
			Values: 4616, Rho: 0.02 / epsilon, Epsilon: epsilon, Delta: 1e-6, BytesUp: 9000, BytesDown: 12000,
			Accuracy: 0.6 + 0.03*math.Log(epsilon) + 0.05*seed, MacroF1: 0.5}
		if at.On["method"] == "A_1" {
			r.Accuracy += 0.02 + 0.001*(seed-3)
			r.BytesUp = 4000
		}
		if r.ByRank = []simulate.RankAccuracy{{Rank: 8, Accuracy: r.Accuracy}}; at.On["method"] == "A_1" {
			r.ByRank = append(r.ByRank, simulate.RankAccuracy{Rank: 1, Accuracy: r.Accuracy - 0.1})
		}
		for v := 1; v <= 20; v++ {
			round := simulate.Round{Number: v}
			if v%5 == 0 {
				round.Accuracy = []simulate.RankAccuracy{{Rank: 1, Accuracy: 0.1}, {Rank: 8, Accuracy: r.Accuracy * (1 - 1/float64(v))}}
			}
			r.Curve = append(r.Curve, round)
		}
		b, err := json.Marshal(r)
		ok(t, err)
		folder := filepath.Join(dir, sweep.RunsFolder, id)
		ok(t, os.MkdirAll(folder, 0o755))
		ok(t, os.WriteFile(filepath.Join(folder, "result.json"), b, 0o600))
	}
	return dir
}

// Pairs are over seeds: what the seeds have in common does not blur the difference.
func TestPairedDifferences(t *testing.T) {
	r, err := New(IntervalT, grid(t))
	ok(t, err)
	if len(r.Cells) != 6 || len(r.Pairs) != 3 || r.Done != 30 {
		t.Fatalf("%d cells, %d pairs, %d runs", len(r.Cells), len(r.Pairs), r.Done)
	}
	for _, p := range r.Pairs {
		// 2.7764 standard errors of five values 0.001 apart.
		if p.N != 5 || math.Abs(p.Mean-0.02) > 1e-12 || math.Abs(p.Low-0.018037) > 1e-6 || math.Abs(p.High-0.021963) > 1e-6 {
			t.Errorf("%+v, want 0.02 in 0.018..0.022", p)
		}
		if p.P == nil || !(*p.P < 1e-4) || p.verdict() != "better" {
			t.Errorf("%+v: %s", p, p.verdict())
		}
		if r.Against(p) != "B" {
			t.Errorf("against %q", r.Against(p))
		}
	}
	if sd := r.Cells[0].Accuracy.SD; math.Abs(sd-0.051*math.Sqrt(2.5)) > 1e-9 { // seeds 0.051 apart
		t.Errorf("standard deviation %v", sd)
	}
}

func TestReportOpensOffline(t *testing.T) {
	dir := grid(t)
	r, err := New(IntervalT, dir)
	ok(t, err)
	out := t.TempDir()
	paths, err := r.Write(out)
	ok(t, err)
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	ok(t, err)
	if m := regexp.MustCompile(`(?i)(src|href)\s*=\s*"(?:[^d]|d[^a])[^"]*"`).Find(page); m != nil {
		t.Errorf("the page refers to %s", m)
	}
	if bytes.Contains(page, []byte("made up <b>")) || !bytes.Contains(page, []byte("made up &lt;b&gt;")) {
		t.Error("a name's markup reaches the page")
	}
	tex, err := os.ReadFile(filepath.Join(out, "tables.tex"))
	ok(t, err)
	if !bytes.Contains(tex, []byte(`A\_1`)) || !bytes.Contains(tex, []byte(`$+2.0$`)) {
		t.Errorf("tables:\n%s", tex)
	}
	pngs := 0
	for _, p := range paths {
		if filepath.Ext(p) != ".png" {
			continue
		}
		pngs++
		f, err := os.Open(p)
		ok(t, err)
		img, err := png.Decode(f)
		ok(t, errors.Join(err, f.Close()))
		b := img.Bounds()
		if b.Dx() < 800 {
			t.Errorf("%s is %v", p, b)
		}
		// The legend stands beside the plot: one form without it would be narrower.
		vectors, err := os.ReadFile(strings.TrimSuffix(p, ".png") + ".svg")
		ok(t, err)
		var x, y, width, height float64
		at := max(0, bytes.Index(vectors, []byte(`viewBox="`)))
		_, err = fmt.Sscanf(string(vectors[at:]), `viewBox="%g %g %g %g"`, &x, &y, &width, &height)
		ok(t, err)
		if want := width / height; math.Abs(float64(b.Dx())/float64(b.Dy())-want) > 0.01 {
			t.Errorf("%s is %v, its vectors %v x %v", p, b, width, height)
		}
	}
	if pngs != 4 {
		t.Errorf("%d plots, want privacy-utility, bytes-utility, rank-utility and learning curves", pngs)
	}
	again, err := New(IntervalT, dir)
	ok(t, err)
	for i, p := range again.Plots {
		for _, ending := range Formats {
			a, errA := p.File("figure" + ending)
			b, errB := r.Plots[i].File("figure" + strings.ToUpper(ending))
			if ok(t, errors.Join(errA, errB)); len(a) == 0 || !bytes.Equal(a, b) {
				t.Errorf("%s%s is another when it is drawn again", p.Name, ending)
			}
		}
		if !bytes.HasPrefix(p.PDF, []byte("%PDF-")) {
			t.Errorf("%s.pdf begins with %q", p.Name, p.PDF[:8])
		}
	}
	if b, err := again.html(); err != nil || !bytes.Equal(b, page) {
		t.Error("the same runs, another report")
	}
}

// What came to nothing is said, with its place and reason, and a stranger's text is
// harmless on the page and in LaTeX.
func TestReportOfAHalfDoneGrid(t *testing.T) {
	dir := grid(t)
	x, done, err := sweep.Read(dir)
	ok(t, err)
	for i, run := range x.Runs[:2] { // one failed, one never made
		folder := filepath.Join(dir, sweep.RunsFolder, run.ID)
		ok(t, os.Remove(filepath.Join(folder, "result.json")))
		if i == 0 {
			ok(t, os.WriteFile(filepath.Join(folder, "failed.json"), []byte(`{"error":"training <diverged>"}`), 0o600))
		}
	}
	r, err := New(IntervalT, dir)
	ok(t, err)
	if r.Done != len(done)-2 || len(r.Failed) != 1 {
		t.Errorf("%d done, failed %+v", r.Done, r.Failed)
	}
	page, err := r.html()
	ok(t, err)
	if !bytes.Contains(page, []byte("method A_1, privacy.epsilon 1, seed 1</dt><dd>training &lt;diverged&gt;")) {
		t.Error("the page does not say what failed")
	}
	var out bytes.Buffer
	ok(t, r.Print(&out, nil))
	if !strings.Contains(out.String(), "failed: method A_1, privacy.epsilon 1, seed 1: training <diverged>") {
		t.Errorf("the summary does not say what failed:\n%s", &out)
	}
	if got := escape("a_b\r\n<\\input{x}>|\u2028%"); got != `a\_b  \textless{}\textbackslash{}input\{x\}\textgreater{}\textbar{} \%` {
		t.Errorf("LaTeX: %s", got)
	}
	ok(t, os.WriteFile(filepath.Join(dir, sweep.RunsFolder, x.Runs[3].ID, "result.json"), []byte(`{`), 0o600))
	if _, err := New(IntervalT, dir); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a damaged record: %v", err)
	}
}

// Series that share a colour differ in their sign, up to as many as a plot shows.
func TestSeriesCanBeToldApart(t *testing.T) {
	type look struct{ colour, shape any }
	seen := map[look]int{}
	for i := range maxSeries {
		l := look{palette.Series[i%len(palette.Series)].Light, shapeOf(i)}
		if other, ok := seen[l]; ok {
			t.Errorf("series %d and %d look alike", other, i)
		}
		seen[l] = i
	}
}

// A spread is of two values or more, and an axis is labelled as one speaks.
func TestNumbersAsOneSaysThem(t *testing.T) {
	if one, two := summarize([]float64{0.5}).percent(" ± "), summarize([]float64{0.5, 0.6}).percent(" ± "); one != "50.0" || two != "55.0 ± 7.1" {
		t.Errorf("%s and %s", one, two)
	}
	for want, v := range map[string]float64{"0.1": 0.1, "1000": 1000, "30k": 30000, "1M": 1e6} {
		if got := canvas.Named(v); got != want {
			t.Errorf("%v is called %s, want %s", v, got, want)
		}
	}
}

func TestAnEmptyGrid(t *testing.T) {
	dir := t.TempDir()
	p, err := sweep.Parse(strings.NewReader("seeds: [1]"), "")
	ok(t, err)
	ok(t, new(sweep.Lab).Keep(p, dir))
	if _, err := New(IntervalT, dir); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
}
