package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/internal/leaf/certificate"
	"github.com/starling-fl/starling/internal/testkit/authority"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// TestRenewedCertificate: certificate files are shown as an authority signed them, again
// once they are renewed, and as before while they are broken, which is logged once.
func TestRenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	chain, key := filepath.Join(dir, "chain.pem"), filepath.Join(dir, "key.pem")
	var log bytes.Buffer
	if _, err := FromFiles(chain, key, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "chain.pem") {
		t.Fatalf("files that are not there: %v", err)
	}
	a := authority.New(t)
	a.Issue(t, 7, chain, key)
	f, err := certificate.Open(chain, key, slog.New(slog.NewTextHandler(&log, nil)))
	ok(t, err)
	e, err := Listen("127.0.0.1:0", &Certificate{get: f.Get, leaf: f.Leaf, name: "localhost"})
	ok(t, err)
	if e.Pin != nil || !strings.HasPrefix(e.URL, "https://localhost:") {
		t.Errorf("pin %x, %s", e.Pin, e.URL)
	}
	c, s := serve(t, tinyJob(3), Config{})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, e) }()
	defer func() {
		cancel()
		ok(t, errors.Join(watchdog.Recv(t, "the listener's end", served), c.Close()))
	}()
	shown := func() int64 {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: a.Roots}}, Timeout: time.Minute}
		r, err := client.Get(e.URL + "/healthz")
		ok(t, err)
		defer r.Body.Close()
		return r.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := shown(); got != 7 {
		t.Errorf("certificate %d", got)
	}
	a.Issue(t, 8, chain, key)
	if got := shown(); got != 7 {
		t.Errorf("certificate %d was read at once: files are looked at for each connection", got)
	}
	f.Again()
	if got := shown(); got != 8 {
		t.Errorf("certificate %d, renewed was 8", got)
	}
	ok(t, os.WriteFile(key, []byte("half a key"), 0o600))
	for range 2 {
		f.Again()
		if got := shown(); got != 8 {
			t.Errorf("certificate %d while its key is broken", got)
		}
	}
	if n := strings.Count(log.String(), "cannot be read again"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

// TestCertificateEnds: an operator is told of a certificate that ends within two weeks, and of one that has ended, once
// each and whether or not its files change; one that has ended is no state to be ready in, and when it ends is a figure.
func TestCertificateEnds(t *testing.T) {
	dir := t.TempDir()
	chain, key := filepath.Join(dir, "chain.pem"), filepath.Join(dir, "key.pem")
	a := authority.New(t)
	for _, c := range []struct {
		left time.Duration
		log  string
		ok   bool
	}{{60 * 24 * time.Hour, "", true}, {13 * 24 * time.Hour, "ends soon", true}, {-30 * 24 * time.Hour, "has ended", false}} {
		var log bytes.Buffer
		until := time.Now().Add(c.left)
		a.IssueUntil(t, 1, chain, key, until)
		cert, err := FromFiles(chain, key, slog.New(slog.NewTextHandler(&log, nil)))
		ok(t, err)
		e, err := Listen("127.0.0.1:0", cert)
		ok(t, err)
		t.Cleanup(func() { e.Listener.Close() })
		var l listening
		end := l.serve("devices", e)
		checks := l.checks(time.Now())
		if len(checks) != 1 || checks[0].Name != "certificate" || checks[0].OK != c.ok || ready(checks) != c.ok {
			t.Errorf("%v left: %+v", c.left, checks)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != min(1, len(c.log)) || !strings.Contains(log.String(), c.log) {
			t.Errorf("%v left: logged %q", c.left, &log)
		}
		r := prometheus.NewRegistry()
		ok(t, r.Register(figures{&l, func() ([]coordinator.Check, bool) {
			all := l.checks(time.Now())
			return all, ready(all)
		}}))
		found, err := r.Gather()
		ok(t, err)
		got := map[string]float64{}
		for _, f := range found {
			got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
		if want := float64(until.Unix()); got["starling_certificate_not_after_timestamp_seconds"] != want || got["starling_ready"] != map[bool]float64{true: 1}[c.ok] {
			t.Errorf("%v left: figures %v, want the end %v", c.left, got, want)
		}
		if end(); len(l.checks(time.Now())) != 0 {
			t.Error("what is served no more is checked")
		}
	}
	// It ends while its files stay as they are.
	var log bytes.Buffer
	a.IssueUntil(t, 2, chain, key, time.Now().Add(20*24*time.Hour))
	f, err := certificate.Open(chain, key, slog.New(slog.NewTextHandler(&log, nil)))
	ok(t, err)
	for _, later := range []time.Duration{0, 7, 8, 21, 22} {
		f.Warn(time.Now().Add(later * 24 * time.Hour))
	}
	if text := log.String(); strings.Count(text, "ends soon") != 1 || strings.Count(text, "has ended") != 1 {
		t.Errorf("logged %q", text)
	}
}
