package main

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

// Three worker processes, one of them killed again and again: the result is that
// of a run without any.
func TestKilledWorkersChangeNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := build(t)
	command := func(out string, more ...string) []string {
		return append([]string{"simulate", "--rounds", "6", "--cohort", "64", "--examples", "4", "--every", "0", "--validation", "40",
			"--set", "training.steps=2", "--set", "adapter.rank_max=2", "--out", out}, more...)
	}
	alone := filepath.Join(dir, "alone")
	if err := start(t, binary, command(alone)...).end(); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(dir, "shared")
	p := start(t, binary, command(shared, "--workers", "0", "--nats-listen", "127.0.0.1:0")...)
	url := p.await(t, `starling worker --nats (\S+)`)[1]
	worker := func() *process {
		return start(t, binary, "worker", "--nats", url, "--workers", "1", "--ack-wait", "2s")
	}
	worker()
	worker()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	limit := time.After(3 * time.Minute)
	for kills := 0; ; kills++ {
		victim := worker()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, p.said())
			}
			if kills < 2 {
				t.Logf("only %d workers were killed on this machine", kills)
			}
			if !bytes.Equal(simulated(t, shared), simulated(t, alone)) {
				t.Error("another adapter")
			}
			return
		case <-time.After(time.Duration(300+rand.IntN(700)) * time.Millisecond):
			if err := victim.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		case <-limit:
			t.Fatalf("no result in three minutes:\n%s", p.said())
		}
	}
}
