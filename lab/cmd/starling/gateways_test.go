//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/postgrestest"
	"github.com/starling-fl/starling/internal/watchdog"
	"github.com/starling-fl/starling/lab/gateways"
	"github.com/starling-fl/starling/lab/loadtest"
)

// TestGateways: devices come by three gateways over NATS to one of two owners of one PostgreSQL
// database. Each process is killed once, and the database and NATS are restarted. The job ends,
// no round was charged twice, and both kinds of ledger verify and agree.
func TestGateways(t *testing.T) {
	database, err := postgrestest.Start()
	if errors.Is(err, postgrestest.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Stop(); err != nil {
			t.Error(err)
		}
	})
	broker, err := gateways.Start(t.TempDir(), "../../../deploy/nats/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Stop)
	dir, binary := t.TempDir(), build(t)
	const devices, rounds = 120, 9
	names := []string{"one", "two", "three"}
	file := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `
name: load
labels: [a, b]
rounds: %d
adapter: {rank_min: 1, rank_max: 2}
cohort: {population: %d, floor: 3}
shard: {size: 16, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`, rounds, devices), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := func(i int) string { return filepath.Join(dir, fmt.Sprintf("owner%d", i)) }
	var at []string
	for range names {
		at = append(at, freePort(t))
	}
	owner := func(i int) *process {
		to := broker.Access("owner")
		return start(t, binary, "serve", "--dir", folder(i), "--store", database.URL(), "--nats", to.URL, "--nats-ca", to.CA,
			"--tls", "--url", "https://"+at[0], "--log", "text")
	}
	gateway := func(i int) *process {
		to := broker.Access(names[i])
		return start(t, binary, "gateway", "--nats", to.URL, "--nats-ca", to.CA, "--name", names[i], "--listen", at[i], "--log", "text")
	}
	charged := func() (l store.Ledger) {
		l, err := store.ReadLedger(filepath.Join(folder(0), "jobs", "load"))
		if err != nil && !errors.Is(err, store.ErrNoStore) {
			t.Fatal(err)
		}
		return l
	}
	more := func(what string) {
		t.Helper()
		was, began := len(charged().Entries), time.Now()
		watchdog.Wait(t, what, func() {
			for len(charged().Entries) == was && watchdog.Context(t).Err() == nil {
				time.Sleep(50 * time.Millisecond)
			}
		})
		t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
	}
	first := owner(0)
	first.await(t, "listening on")
	if out, err := exec.CommandContext(watchdog.Context(t), binary, "job", "submit", "--dir", folder(0), file).CombinedOutput(); err != nil {
		t.Fatalf("job submit: %v\n%s", err, out)
	}
	token := first.await(t, `^job load: join with: starling join (\S+)`)[1]
	// Of one name to devices, they show one certificate.
	pem, err := os.ReadFile(filepath.Join(folder(0), "tls.pem"))
	if err == nil {
		err = errors.Join(os.Mkdir(folder(1), 0o700), os.WriteFile(filepath.Join(folder(1), "tls.pem"), pem, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	second := owner(1)
	second.await(t, "standing by")

	ctx, stop := context.WithCancel(watchdog.Context(t))
	var playing sync.WaitGroup
	t.Cleanup(func() { stop(); playing.Wait() })
	passing := make([]*process, len(names))
	for i := range names {
		passing[i] = gateway(i)
		passing[i].await(t, "linked to the owner")
	}
	fleet, err := loadtest.New(loadtest.Config{Devices: devices, Drop: 0.05, By: at}, token)
	if err != nil {
		t.Fatal(err)
	}
	playing.Go(func() { fleet.Run(ctx) })
	more("the first round")
	for i := range names {
		if err := passing[i].cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		passing[i].end()
		passing[i] = gateway(i)
		more("a round after the death of gateway " + names[i])
	}
	killed := time.Now()
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second.await(t, "listening on")
	passing[2].await(t, "linked to the owner")
	t.Logf("a killed owner was replaced after %v", time.Since(killed))
	first.end()
	third := owner(0) // as whatever started it would
	third.await(t, "standing by")
	more("a round of the second owner")
	if err := errors.Join(database.Restart(), broker.Restart()); err != nil {
		t.Fatal(err)
	}
	more("a round after the restart of database and NATS")
	if err := second.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	third.await(t, "listening on")
	third.await(t, `msg="job over".*state=finished`)
	watchdog.Wait(t, "the devices' end", playing.Wait)
	settled(t, binary, folder(1), charged(), rounds)
	if r := fleet.Report(); r.Finished != devices {
		t.Errorf("%+v", r)
	}
	for _, p := range append(passing, third) {
		if strings.Contains(p.said(), "tls://") {
			t.Error("the address of NATS, with its password, is in the log")
		}
	}
}
