package server

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/evaluate/metric"
	"github.com/starling-fl/starling/model"
)

// fair finds every adapter fair.
type fair struct{}

func (fair) Evaluate(_ context.Context, _ *model.Adapter, ranks []int) ([]metric.Score, error) {
	return slices.Repeat([]metric.Score{{Accuracy: 0.5, Loss: 1}}, len(ranks)), nil
}

// TestAlertsAskForWhatThereIs: alerts and the board name no figure and no label's value that
// a coordinator does not have: one that asks for nothing never fires.
func TestAlertsAskForWhatThereIs(t *testing.T) {
	c, err := coordinator.New(coordinator.Config{Job: tinyJob(3), Dir: t.TempDir(), Base: tinyBase(t), Hosts: []string{}, Evaluator: fair{}})
	ok(t, err)
	s, err := New(c, Config{})
	ok(t, err)
	e, err := Listen("127.0.0.1:0", nil)
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, e) }()
	defer func() {
		cancel()
		<-served
		ok(t, c.Close())
	}()
	play(t, c, s.Token(e.URL, nil), 3)
	r := prometheus.NewRegistry()
	r.MustRegister(c.Metrics()...)
	families, err := r.Gather()
	ok(t, err)
	have := map[string]bool{}
	for _, f := range families {
		have[f.GetName()] = true
		for _, part := range []string{"_count", "_sum", "_bucket"} {
			have[f.GetName()+part] = f.GetMetric()[0].GetHistogram() != nil
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				have[f.GetName()+"{"+l.GetName()+"="+l.GetValue()] = true
			}
		}
	}
	figures := regexp.MustCompile(`starling_[a-z_]+`)
	chosen := regexp.MustCompile(`(starling_[a-z_]+)\{[^}]*?(guarantee|outcome|turn|state)=\\?"([a-z]+)`)
	asked := map[string]bool{}
	for _, file := range []string{"prometheus/alerts.yml", "grafana/starling.json"} {
		b, err := os.ReadFile(filepath.Join("../../deploy", file))
		ok(t, err)
		for _, name := range figures.FindAllString(string(b), -1) {
			if asked[name] = true; !have[name] {
				t.Errorf("%s asks for %s, which no coordinator has", file, name)
			}
		}
		for _, m := range chosen.FindAllStringSubmatch(string(b), -1) {
			if !have[m[1]+"{"+m[2]+"="+m[3]] {
				t.Errorf("%s asks for %s with %s = %s, which no coordinator has", file, m[1], m[2], m[3])
			}
		}
	}
	if len(asked) < 20 {
		t.Errorf("only %s are asked for", strings.Join(slices.Sorted(maps.Keys(asked)), ", "))
	}
}
