//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/lab/gateways"
	"github.com/starling-fl/starling/lab/loadtest"
)

// TestGateways: devices come by three gateways over NATS to one of two owners of one PostgreSQL
// database. Each process is killed once, and the database and NATS are restarted. The job ends,
// no round was charged twice, and both kinds of ledger verify and agree.
func TestGateways(t *testing.T) {
	t.Parallel()
	const devices, rounds = 120, 9
	s := newService(t, devices, rounds)
	broker, err := gateways.Start(t.TempDir(), "../../../deploy/nats/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Stop)
	names := []string{"one", "two", "three"}
	var at []string
	for range names {
		at = append(at, freePort(t))
	}
	owner := func(i int) *process {
		to := broker.Access("owner")
		return start(t, s.binary, "serve", "--dir", s.folder(i), "--store", s.database.URL(), "--nats", to.URL, "--nats-ca", to.CA,
			"--tls", "--url", "https://"+at[0], "--log", "text")
	}
	gateway := func(i int) *process {
		to := broker.Access(names[i])
		return start(t, s.binary, "gateway", "--nats", to.URL, "--nats-ca", to.CA, "--name", names[i], "--listen", at[i], "--log", "text")
	}
	first := owner(0)
	token := s.submit(first)
	// Of one name to devices, they show one certificate.
	pem, err := os.ReadFile(filepath.Join(s.folder(0), "tls.pem"))
	if err == nil {
		err = errors.Join(os.Mkdir(s.folder(1), 0o700), os.WriteFile(filepath.Join(s.folder(1), "tls.pem"), pem, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	second := owner(1)
	second.await(t, "standing by")

	passing := make([]*process, len(names))
	for i := range names {
		passing[i] = gateway(i)
		passing[i].await(t, "linked to the owner")
	}
	fleet, ended := play(t, loadtest.Config{Devices: devices, Drop: 0.05, By: at}, token)
	s.more("the first round")
	for i := range names {
		if err := passing[i].cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		passing[i].end()
		passing[i] = gateway(i)
		s.more("a round after the death of gateway " + names[i])
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
	s.more("a round of the second owner")
	if err := errors.Join(s.database.Restart(), broker.Restart()); err != nil {
		t.Fatal(err)
	}
	s.more("a round after the restart of database and NATS")
	if err := second.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	third.await(t, "listening on")
	third.await(t, `msg="job over".*state=finished`)
	watchdog.Wait(t, "the devices' end", ended)
	settled(t, s.binary, s.folder(1), s.charged(), rounds, 2)
	if r := fleet.Report(); r.Finished != devices {
		t.Errorf("%+v", r)
	}
	for _, p := range append(passing, third) {
		if strings.Contains(p.said(), "tls://") {
			t.Error("the address of NATS, with its password, is in the log")
		}
	}
}
