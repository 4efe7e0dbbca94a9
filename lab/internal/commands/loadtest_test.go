package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/loadtest"
)

// loaded is a coordinator of a job for n devices on a network, and its token.
func loaded(t *testing.T, n int) (*coordinator.Coordinator, wire.Token) {
	t.Helper()
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "loaded", []string{"a", "b"}, 2
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 3, Alpha: 4, Sequence: 8}
	j.Cohort.Population, j.Cohort.Floor, j.Shard = n, 3, job.Shard{Size: 16, Floor: 3}
	j.Privacy.ClipNorm = 1
	j.Enrolment.Secret = "a secret of sixteen bytes"
	c, err := coordinator.New(coordinator.Config{Job: j, Dir: t.TempDir(), Base: tiny.Base(t, 8, 1, 8), Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err := server.New(c, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(s.Handler())
	t.Cleanup(front.Close)
	token, err := wire.ParseToken(s.Token(front.URL, nil))
	if err != nil {
		t.Fatal(err)
	}
	return c, token
}

// load runs the command.
func load(t *testing.T, args ...string) (r loadtest.Report, err error) {
	t.Helper()
	var out bytes.Buffer
	a := &command.App{Streams: terminal.Streams{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard, JSON: true}}
	cmd := newLoadtestCmd(a)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	watchdog.Wait(t, "the load test", func() { err = cmd.ExecuteContext(t.Context()) })
	if out.Len() > 0 {
		if e := json.Unmarshal(out.Bytes(), &r); e != nil {
			t.Fatal(e)
		}
	}
	return r, err
}

// TestLoadtest: light devices make a job's rounds, and say what they saw of them.
func TestLoadtest(t *testing.T) {
	const n = 24
	c, token := loaded(t, n)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	r, err := load(t, "@"+file, "--devices", fmt.Sprint(n), "--for", "5m")
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	if r.Devices != n || r.Connected != n || r.Finished != n || r.Ended+r.Broken != 0 || len(r.Rounds) != 2 || r.HandshakeMedian <= 0 {
		t.Fatalf("%+v", r)
	}
	for i, one := range r.Rounds {
		if one.Round != uint64(i+1) || one.Assigned != n || one.Committed != n || one.Seconds <= 0 {
			t.Errorf("%+v", one)
		}
	}
}

// TestLoadtestIsBounded: it ends where nobody else ends it, is sent away for good by who does
// not want it, and leaves other machines alone.
func TestLoadtestIsBounded(t *testing.T) {
	c, token := loaded(t, 24)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	defer func() { stop(); <-ran }()
	// Too few for a round; on a busy machine none of them gets in before the end.
	if r, err := load(t, token.String(), "--devices", "3", "--for", "300ms"); (err != nil) != (r.Connected == 0) || r.Devices != 3 || r.Finished+r.Ended+r.Broken != 0 || r.Seconds < 0.2 {
		t.Errorf("devices that are too few: %+v, %v", r, err)
	}
	stranger := token
	stranger.Secret = []byte("another secret of sixteen")
	if r, err := load(t, stranger.String(), "--devices", "3", "--for", "5m"); err == nil || r.Ended != 3 || !strings.Contains(r.Cause, "wrong enrolment secret") {
		t.Errorf("strangers: %+v, %v", r, err)
	}
	far := wire.Token{URL: "https://fl.example.org:8443"}
	for _, args := range [][]string{{}, {"--host", "fl.example.org"}, {"--host", "fl.example.org", "--host", "example.org"},
		{"--host", "fl.example.org", "--host", "fl.example.org", "--host", "fl.example.org"}} {
		if _, err := load(t, append([]string{far.String()}, args...)...); err == nil || !strings.Contains(err.Error(), "--host twice") {
			t.Errorf("another machine with %q: %v", args, err)
		}
	}
	if err := mayLoad(far, []string{"fl.example.org", "fl.example.org"}); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"--devices", "0"}, {"--devices", "50001"}, {"--drop", "1.5"}, {"--for", "25h"}, {"--late", "-1s"}} {
		if _, err := load(t, append([]string{token.String()}, args...)...); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
