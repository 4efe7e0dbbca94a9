package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tinyBase(t testing.TB) *model.Base { return tiny.Base(t, 8, 1, 8) }

// tinyJob is a job for n devices.
func tinyJob(n int) job.Job {
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "tiny", []string{"a", "b"}, 2
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 3, Alpha: 4, Sequence: 8}
	j.Privacy.ClipNorm = 1
	j.Cohort.Population, j.Cohort.Floor = n, min(n, 3)
	j.Shard = job.Shard{Size: 64, Floor: 3}
	j.Deadlines = job.Deadlines{
		Gather: time.Minute, Key: time.Minute, Share: time.Minute, Collect: time.Minute,
		Confirm: time.Minute, Unmask: time.Minute, Reconnect: time.Minute,
	}
	return j
}

// serve makes a coordinator and its server, which the test closes.
func serve(t *testing.T, j job.Job, cfg Config) (*coordinator.Coordinator, *Server) {
	t.Helper()
	c, err := coordinator.New(coordinator.Config{Job: j, Dir: t.TempDir(), Base: tinyBase(t), Hosts: []string{}})
	ok(t, err)
	s, err := New(c, cfg)
	ok(t, err)
	return c, s
}

// still trains nothing.
type still struct{}

func (still) Train(_ context.Context, t edge.Task) ([]float32, error) {
	return make([]float32, len(t.Start)), nil
}

func (still) Close() error { return nil }

// device is a real edge that trains nothing.
func device(t testing.TB, token string) edge.Config {
	t.Helper()
	key, err := edge.NewIdentity()
	ok(t, err)
	trusting := edge.TrustingPolicy()
	return edge.Config{Token: token, Identity: key, Trainer: still{}, Policy: &trusting,
		Data:       edge.Examples(&dataset.Set{Labels: []string{"a", "b"}, Examples: []dataset.Example{{Text: "the fox"}}}),
		BackoffMin: 20 * time.Millisecond, BackoffMax: 500 * time.Millisecond}
}

// join runs so many devices; the returned function waits for their ends.
func join(ctx context.Context, t testing.TB, token string, n int) (ended func() error) {
	t.Helper()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		cfg := device(t, token)
		all.Go(func() { errs[i] = edge.Run(ctx, cfg) })
	}
	return func() error {
		watchdog.Wait(t, "the devices' end", all.Wait)
		return errors.Join(errs...)
	}
}

// play runs a job with so many devices to its end.
func play(t *testing.T, c *coordinator.Coordinator, token string, devices int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := join(ctx, t, token, devices)
	var err error
	watchdog.Wait(t, "the job's end", func() { err = c.Run(ctx) }, func() string { return fmt.Sprintf("%+v", c.Status()) })
	ok(t, errors.Join(err, ended()))
}

// ask has a handler answer a request from the network.
func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// figure is one of the operator's.
func figure(t testing.TB, c *coordinator.Coordinator, name string) float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c.Metrics()...)
	families, err := r.Gather()
	ok(t, err)
	for _, f := range families {
		if m := f.GetMetric(); f.GetName() == "starling_"+name && len(m) == 1 {
			return m[0].GetCounter().GetValue() + m[0].GetGauge().GetValue() // one of which it has not
		}
	}
	t.Fatalf("no figure %s", name)
	return math.NaN()
}

// httpClient keeps no connection open, so that a test leaks no goroutine.
var httpClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// listen binds an address, in the clear or with a certificate that dir keeps.
func listen(t testing.TB, addr, dir string, secure bool) (*Endpoint, error) {
	t.Helper()
	if !secure {
		return Listen(addr, nil)
	}
	cert, err := Pinned(dir)
	if err != nil {
		return nil, err
	}
	return Listen(addr, cert)
}
