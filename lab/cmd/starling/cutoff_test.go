//go:build unix

package main

import (
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/lab/gateways"
	"github.com/starling-fl/starling/lab/loadtest"
)

// cable passes bytes on between two parts until it is cut: then nothing comes through and nobody is told, as where a
// firewall drops packets.
type cable struct {
	to string

	mu    sync.Mutex
	whole *sync.Cond
	cut   bool // guarded by mu
	over  bool // guarded by mu
	open  []net.Conn
}

// between starts a cable to an address, and returns the address of its other end.
func between(t *testing.T, to string) (w *cable, at string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w = &cable{to: to}
	w.whole = sync.NewCond(&w.mu)
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { w.pass(from) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.set(func() { w.over = true })
		passing.Wait()
	})
	return w, l.Addr().String()
}

// set changes the cable; once it is over its connections end.
func (w *cable) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	w.whole.Broadcast()
	if w.over {
		for _, c := range w.open {
			c.Close()
		}
	}
}

// wait waits while the cable is cut.
func (w *cable) wait() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.cut && !w.over {
		w.whole.Wait()
	}
	return !w.over
}

// gated writes through a cable.
type gated struct {
	io.Writer
	w *cable
}

func (g gated) Write(b []byte) (int, error) {
	if !g.w.wait() {
		return 0, net.ErrClosed
	}
	return g.Writer.Write(b)
}

func (w *cable) pass(from net.Conn) {
	defer from.Close()
	if !w.wait() {
		return
	}
	to, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer to.Close()
	w.set(func() { w.open = append(w.open, from, to) })
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(gated{to, w}, from) // either end may hang up
		to.Close()
	})
	_, _ = io.Copy(gated{from, w}, to)
	from.Close()
	both.Wait()
}

// TestOwnerCutOffFromNATS: the active owner is cut off from NATS alone, as by a firewall. It can serve nobody and says
// so; the owner that stands by gets the lease and makes rounds; the first one stands by once NATS is there again. No
// round is charged twice.
func TestOwnerCutOffFromNATS(t *testing.T) {
	t.Parallel()
	const devices, rounds = 24, 6
	s := newService(t, devices, rounds)
	broker, err := gateways.Start(t.TempDir(), "../../../deploy/nats/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Stop)
	at := freePort(t)
	link, err := url.Parse(broker.Access("owner").URL)
	if err != nil {
		t.Fatal(err)
	}
	w, end := between(t, link.Host)
	owner := func(i int, to url.URL) *process {
		return start(t, s.binary, "serve", "--dir", s.folder(i), "--store", s.database.URL(), "--nats", to.String(), "--nats-ca",
			broker.Access("owner").CA, "--tls", "--url", "https://"+at, "--log", "text")
	}
	cut := *link
	cut.Host = end
	first := owner(0, cut)
	token := s.submit(first)
	pem, err := os.ReadFile(filepath.Join(s.folder(0), "tls.pem")) // of one name to devices, they show one certificate
	if err == nil {
		err = errors.Join(os.Mkdir(s.folder(1), 0o700), os.WriteFile(filepath.Join(s.folder(1), "tls.pem"), pem, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	second := owner(1, *link)
	second.await(t, "standing by")
	to := broker.Access("one")
	gateway := start(t, s.binary, "gateway", "--nats", to.URL, "--nats-ca", to.CA, "--name", "one", "--listen", at, "--log", "text")
	gateway.await(t, "linked to the owner")
	_, ended := play(t, loadtest.Config{Devices: devices, By: []string{at}}, token)
	s.more("the first round")

	began := time.Now()
	w.set(func() { w.cut = true })
	first.await(t, "this coordinator cannot serve: the one on standby takes over.*gateways")
	second.await(t, "listening on")
	t.Logf("an owner without NATS was replaced after %v", time.Since(began))
	gateway.await(t, "linked to the owner")
	s.more("a round of the second owner")

	w.set(func() { w.cut = false })
	first.await(t, "standing by")
	second.await(t, `msg="job over".*state=finished`)
	watchdog.Wait(t, "the devices' end", ended)
	settled(t, s.binary, s.folder(1), s.charged(), rounds, 1)
}
