package server

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	gateway "github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// fair finds every adapter fair.
type fair struct{}

func (fair) Evaluate(_ context.Context, _ *model.Adapter, ranks []int) ([]metric.Score, error) {
	return slices.Repeat([]metric.Score{{Accuracy: 0.5, Loss: 1}}, len(ranks)), nil
}

// series is what one line of /metrics is of.
type series struct {
	figure string
	labels map[string]string
}

var (
	seriesLine  = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? \S+$`)
	seriesLabel = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// scraped are the series that a text of /metrics has.
func scraped(text string) (out []series) {
	for _, m := range seriesLine.FindAllStringSubmatch(text, -1) {
		s := series{m[1], map[string]string{}}
		for _, l := range seriesLabel.FindAllStringSubmatch(m[2], -1) {
			s.labels[l[1]] = l[2]
		}
		out = append(out, s)
	}
	return out
}

// watched are the files of deploy that ask for figures.
func watched(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range []string{"prometheus/alerts.yml", "grafana/starling.json"} {
		b, err := os.ReadFile(filepath.Join("../../deploy", file))
		ok(t, err)
		out[file] = string(b)
	}
	return out
}

// severalJobs is what a server of two jobs with a budget in common shows, of which one was made.
func severalJobs(t *testing.T) []series {
	t.Helper()
	site, _ := siteOf(t)
	hand, err := site.fleet()
	ok(t, err)
	t.Cleanup(func() { ok(t, hand.Close()) })
	for _, name := range []string{"one", "two"} {
		ok(t, hand.Submit(store.Hosted{Name: name, File: []byte(jobText(t, name))}))
	}
	ok(t, site.cfg.Host.Budget(100, 1e-6))
	site.changed()
	watchdog.Wait(t, "two jobs to be open", func() {
		for len(site.all()) < 2 {
			time.Sleep(2 * time.Millisecond)
		}
	})
	ok(t, join(t.Context(), t, site.Token("one"), 3)())
	watchdog.Wait(t, "a job to be over, and still shown", func() {
		for s, _ := site.cfg.Host.Status("one"); s.State != monitor.StateFinished; s, _ = site.cfg.Host.Status("one") {
			time.Sleep(2 * time.Millisecond)
		}
	})
	code, b := asked(t, site.named(site.AdminHandler()), "GET", "/metrics", map[string]string{"Authorization": "Bearer " + site.AdminToken()})
	if code != 200 {
		t.Fatalf("/metrics: %d %s", code, b)
	}
	return scraped(string(b))
}

// TestAlertsAskForWhatThereIs: alerts and the board name no figure and no label's value that
// a coordinator does not have: one that asks for nothing never fires.
func TestAlertsAskForWhatThereIs(t *testing.T) {
	c, err := coordinator.New(coordinator.Config{Job: tinyJob(3), Dir: t.TempDir(), Base: tinyBase(t), Hosts: []string{}, Evaluator: fair{}})
	ok(t, err)
	s, err := New(c, Config{})
	ok(t, err)
	cert, err := Pinned(t.TempDir())
	ok(t, err)
	e, err := Listen("127.0.0.1:0", cert)
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, e) }()
	defer func() {
		cancel()
		<-served
		ok(t, c.Close())
	}()
	play(t, c, s.Token(e.URL, e.Pin), 3)
	g, err := gateway.NewGateway(nil, "one", nil)
	ok(t, err)
	text := ask(s.AdminHandler(), "GET", "/metrics", "Authorization", "Bearer "+s.AdminToken()).Body.String() +
		ask(g.Health(), "GET", "/metrics").Body.String()
	have := map[string]bool{}
	for _, s := range slices.Concat(scraped(text), severalJobs(t)) {
		have[s.figure] = true
		for name, value := range s.labels {
			have[s.figure+"{"+name+"="+value] = true
		}
	}
	figures := regexp.MustCompile(`starling_[a-z_]+`)
	chosen := regexp.MustCompile(`(starling_[a-z_]+)\{[^}]*?(guarantee|outcome|turn|state|listener|check)=\\?"([a-z]+)`)
	asked := map[string]bool{}
	for file, text := range watched(t) {
		for _, name := range figures.FindAllString(text, -1) {
			if asked[name] = true; !have[name] {
				t.Errorf("%s asks for %s, which no coordinator has", file, name)
			}
		}
		for _, m := range chosen.FindAllStringSubmatch(text, -1) {
			if !have[m[1]+"{"+m[2]+"="+m[3]] {
				t.Errorf("%s asks for %s with %s = %s, which no coordinator has", file, m[1], m[2], m[3])
			}
		}
	}
	if len(asked) < 20 {
		t.Errorf("only %s are asked for", strings.Join(slices.Sorted(maps.Keys(asked)), ", "))
	}
}

// TestAlertsMatchOneJob: where alerts and the board compare two figures, the labels by which they
// match name one series of the right one alone, on a server of several jobs, too: Prometheus
// refuses to compare otherwise, and says so nowhere that anybody looks.
func TestAlertsMatchOneJob(t *testing.T) {
	all := severalJobs(t)
	matched := regexp.MustCompile(`on\(([^)]*)\)(?: group_left)? (?:[0-9.]+ \* )?(starling_[a-z_]+)(?:\{([^}]*)\})?`)
	seen := 0
	for file, text := range watched(t) {
		for _, m := range matched.FindAllStringSubmatch(strings.ReplaceAll(text, `\"`, `"`), -1) {
			seen++
			of := map[string]int{}
			for _, s := range all {
				wanted := s.figure == m[2]
				for _, l := range seriesLabel.FindAllStringSubmatch(m[3], -1) {
					wanted = wanted && s.labels[l[1]] == l[2]
				}
				if !wanted {
					continue
				}
				key := ""
				for _, name := range strings.Split(m[1], ", ") {
					key += fmt.Sprintf("%s=%q ", name, s.labels[name])
				}
				of[key]++
			}
			for key, n := range of {
				if n > 1 {
					t.Errorf("%s: %q: %d series of %s", file, m[0], n, key)
				}
			}
			if len(of) == 0 {
				t.Errorf("%s: %q matches nothing", file, m[0])
			}
		}
	}
	if seen < 5 {
		t.Errorf("%d comparisons were found", seen)
	}
}
