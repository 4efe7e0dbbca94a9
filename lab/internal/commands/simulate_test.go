package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/sweep"
)

// given are the flags and keys of one command.
type given struct {
	flags map[string]string // population, cohort, sampling-rate
	keys  map[string]string
}

// job resolves them as simulate does, to the job that would be run.
func (g given) job(t *testing.T) (job.Job, sweep.Settings, error) {
	t.Helper()
	f := simulateFlags{settings: sweep.DefaultSettings(), rounds: 20, epsilon: 2, job: g.flags["job"]}
	for name, text := range g.flags {
		v, err := strconv.ParseFloat(text, 64)
		switch name {
		case "population":
			f.settings.Population = int(v)
		case "cohort":
			f.settings.Cohort = int(v)
		case "sampling-rate":
			f.settings.SamplingRate = v
		case "job":
			err = nil
		default:
			err = fmt.Errorf("no flag of the test")
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for k, v := range g.keys {
		f.set = append(f.set, k+"="+v)
	}
	slices.Sort(f.set)
	s, err := f.resolve(func(flag string) bool { _, ok := g.flags[flag]; return ok })
	if err != nil {
		return job.Job{}, s, err
	}
	j, err := s.JobOf("x", []string{"a", "b"})
	return j, s, err
}

// apply changes what is given as a refusal recommends.
func (g given) apply(r job.Remedy) {
	for _, c := range r {
		flag := strings.ReplaceAll(c.Key, "_", "-")
		if flag == "cohort" { // one and the same, however it was given
			delete(g.keys, "cohort.size")
		}
		switch {
		case c.Value == nil:
			delete(g.keys, c.Key)
		case strings.Contains(c.Key, "."):
			g.keys[c.Key] = fmt.Sprint(c.Value)
		default:
			g.flags[flag] = fmt.Sprint(c.Value)
		}
	}
}

// What simulate refuses of who takes part it refuses with what would do, and that does.
func TestRefusalsRecommendWhatPasses(t *testing.T) {
	refused, all, at := 0, 0, 0
	for _, n := range []string{"2", "3", "6", "12", "40", "400", "100000"} {
		for _, sampling := range []string{"", "cohort", "rate .5", "rate .01", "rate .5 cohort", "fixed", "fixed cohort", "size"} {
			for _, privacy := range []string{"", "privacy.none=true", "privacy=none", "privacy.noise=devices"} {
				for _, shard := range []string{"", "shard.floor=8", "shard.corrupt=0.2", "shard.size=8", "cohort.floor=10"} {
					if at++; at%13 != 0 && (n != "12" || at%2 > 0) { // all of them take half a minute of a core
						continue
					}
					g := given{map[string]string{"population": n}, map[string]string{}}
					people, _ := strconv.Atoi(n)
					half := fmt.Sprint(max(2, min(people/2, 50)))
					if strings.Contains(sampling, "cohort") {
						g.flags["cohort"] = half
					}
					if rate, ok := strings.CutPrefix(strings.TrimSuffix(sampling, " cohort"), "rate "); ok {
						g.flags["sampling-rate"] = rate
					}
					if strings.Contains(sampling, "fixed") || sampling == "size" {
						g.keys["cohort.sampling"] = "fixed"
					}
					if sampling == "size" {
						g.keys["cohort.size"] = half
					}
					for _, pair := range []string{privacy, shard} {
						if key, value, ok := strings.Cut(pair, "="); ok {
							g.keys[key] = value
						}
					}
					all++
					said := fmt.Sprint(g)
					_, _, err := g.job(t)
					if err == nil {
						continue
					}
					if !recommends(err) {
						t.Errorf("%s: %v", said, err)
						continue
					}
					refused++
					if remedy, ok := job.RemedyOf(err); ok {
						g.apply(remedy)
						if _, _, again := g.job(t); again != nil {
							t.Errorf("%s: %v, and then: %v", said, err, again)
						}
					}
				}
			}
		}
	}
	if refused < all/20 {
		t.Errorf("%d of %d were refused: the grid shows nothing", refused, all)
	}
}

// recommends reports whether an error says what would do, or asks for what nobody can guess.
func recommends(err error) bool {
	_, ok := job.RemedyOf(err)
	for _, asks := range []string{"say how many of the", "nothing is left to scale", "few devices' own noise is not that of many"} {
		ok = ok || strings.Contains(err.Error(), asks)
	}
	return ok
}

// Six of twelve laptops without privacy: each way to ask for them works at once, and clips nothing.
func TestSixOfTwelveLaptops(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte("privacy: none\ncohort:\n  population: 12\n  sampling: fixed\n  size: 6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, g := range []given{
		{map[string]string{"population": "12", "cohort": "6"}, map[string]string{"privacy.none": "true"}},
		{map[string]string{"population": "12", "cohort": "6"}, map[string]string{"privacy": "none"}},
		{map[string]string{"population": "12", "cohort": "6"}, map[string]string{"privacy": "none", "cohort.sampling": "fixed"}},
		{map[string]string{"population": "12"}, map[string]string{"privacy": "none", "cohort.sampling": "fixed", "cohort.size": "6"}},
		{map[string]string{}, map[string]string{"privacy": "none", "cohort.population": "12", "cohort.sampling": "fixed", "cohort.size": "6"}},
		{map[string]string{"population": "12", "sampling-rate": "0.5"}, map[string]string{"privacy": "none"}},
		{map[string]string{"job": file}, map[string]string{}},
	} {
		j, s, err := g.job(t)
		if err != nil || j.Cohort.Population != 12 || j.ExpectedCohort() != 6 || !s.Unclipped {
			t.Errorf("%v: %d of %d, unclipped %v, %v", g, int(j.ExpectedCohort()), j.Cohort.Population, s.Unclipped, err)
		}
	}
	for _, key := range []string{"unclipped", "privacy.clip_norm"} {
		g := given{map[string]string{"population": "12", "cohort": "6"}, map[string]string{"privacy": "none", key: map[string]string{
			"unclipped": "false", "privacy.clip_norm": "2"}[key]}}
		if _, s, err := g.job(t); err != nil || s.Unclipped {
			t.Errorf("%v: unclipped %v, %v", g, s.Unclipped, err)
		}
	}
}

// A population that somebody gives alone is enough.
func TestPopulationAlone(t *testing.T) {
	for n, want := range map[string]float64{"40": 40, "100": 100, "5000": 100, "20000": 100, "1000000": 100} {
		if j, _, err := (given{flags: map[string]string{"population": n}}).job(t); err != nil || j.ExpectedCohort() < want-1e-9 || j.ExpectedCohort() > want+1e-9 {
			t.Errorf("%s clients: %v a round, %v", n, j.ExpectedCohort(), err)
		}
	}
}

// What takes long is said once, and what ended before is not.
func TestSlowWorkIsSaid(t *testing.T) {
	said := make(chan string, 4)
	var d doing
	w := writerFunc(func(b []byte) (int, error) { said <- string(b); return len(b), nil })
	d.begin(w, time.Hour, "compiling")
	d.begin(w, 0, "scoring rank 1")
	if got := watchdog.Recv(t, "the line", said); got != "  scoring rank 1 ...\n" {
		t.Errorf("said %q", got)
	}
	d.begin(w, 0, "")
	d.begin(w, 0, "the end")
	if got := watchdog.Recv(t, "the end", said); got != "  the end ...\n" {
		t.Errorf("said %q", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
