package operator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/demo"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/internal/app/service"
	"github.com/starling-fl/starling/internal/app/sim"
)

// TestOpenDashboard: what --open hands to the browser shows the run to who has
// the whole address, and to nobody else.
func TestOpenDashboard(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the browser is played by a shell script")
	}
	dir := t.TempDir()
	opened := filepath.Join(dir, "opened")
	script := filepath.Join(dir, "browser")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf %s \"$1\" > "+opened+".new && mv "+opened+".new "+opened+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROWSER", script)
	data, err := fleetdata.Invoices(1, 4)
	if err != nil {
		t.Fatal(err)
	}
	f := demo.Config{Rounds: 1, Clients: 4, Epsilon: 2, Unit: "device"}
	job, err := f.Job(data)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bases.Load("")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cfg := sim.Config{Clients: data.Clients}
	cfg.Coordinator.Job, cfg.Coordinator.Dir, cfg.Coordinator.Base = job, filepath.Join(dir, "run"), b
	cfg.Pages = service.Pages(&said)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg.Listening = func(url, token string) {
		showDashboard(&said, service.Dashboard(url, token))
		if got := fetch(t, url+"/v1/admin/events", token); got != http.StatusOK {
			t.Errorf("with the token: %d", got)
		}
		if got := fetch(t, url+"/v1/admin/events", strings.Repeat("0", 64)); got != http.StatusUnauthorized {
			t.Errorf("with another: %d", got)
		}
		if got := fetch(t, url+"/dashboard", ""); got != http.StatusOK { // also where it says that it is not built
			t.Errorf("page: %d", got)
		}
		want := service.Dashboard(url, token)
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if b, err := os.ReadFile(opened); err == nil {
				if string(b) != want {
					t.Errorf("opened %q, want %q", b, want)
				}
				break
			}
			if time.Now().After(end) {
				t.Error("no browser was opened")
				break
			}
		}
		cancel() // the run itself is other tests'
	}
	if _, err := sim.Run(ctx, cfg); err == nil {
		t.Error("the run was not ended")
	}
	if !strings.Contains(said.String(), "/dashboard#") {
		t.Errorf("said %q", said.String())
	}
	t.Setenv("BROWSER", filepath.Join(dir, "none"))
	said.Reset()
	showDashboard(&said, "http://127.0.0.1/dashboard#x")
	if !strings.Contains(said.String(), "open the address yourself") {
		t.Errorf("without a browser: %q", said.String())
	}
}

// fetch asks and yields the status alone: the stream has no end.
func fetch(t *testing.T, url, token string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return 0
	}
	if _, err := io.CopyN(io.Discard, res.Body, 1); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("%s: %v", url, err)
	}
	res.Body.Close()
	return res.StatusCode
}
