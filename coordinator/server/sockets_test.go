package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/internal/leaf/pipes"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/model"
)

const (
	victimDir   = "STARLING_SERVER_VICTIM_DIR"
	victimFiles = 220 // its limit of open files
)

// TestMain turns the test binary into the server that strangers overrun.
func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		fmt.Println("error", victim(dir))
		return
	}
	goleak.VerifyTestMain(m)
}

// victim serves a job to its end, 40 connections an address.
func victim(dir string) error {
	if err := limitFiles(); err != nil {
		return err
	}
	c, err := coordinator.New(coordinator.Config{Job: tinyJob(4), Dir: dir, Base: tinyBase(&testing.T{}), Hosts: []string{}})
	if err != nil {
		return err
	}
	s, err := New(c, Config{MaxPerAddress: 40})
	if err != nil {
		return err
	}
	e, err := Listen("127.0.0.1:0", nil)
	if err != nil {
		return err
	}
	fmt.Println("url", e.URL)
	go s.Serve(context.Background(), e)
	return c.Run(context.Background())
}

// TestHostileIdleSockets: a stranger who opens sockets and says nothing takes
// neither the process's last file nor the honest devices' connections. The
// coordinator is a process of its own with 220 open files.
func TestHostileIdleSockets(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows limits no process's open files")
	}
	const n = 4
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	fleet, stop := ctx, cancel
	said, most, ended := "", 0, func() error { return nil }
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if url, ok := strings.CutPrefix(lines.Text(), "url http://"); ok {
			stranger := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 5 * time.Second}
			for range 600 {
				conn, err := stranger.Dial("tcp", url)
				if err != nil {
					break // the kernel's queue is full, or this machine has one loopback address only
				}
				held = append(held, conn)
			}
			most = open(held)
			for range 50 { // what was turned away may be on its way back
				if most > 40 {
					time.Sleep(100 * time.Millisecond)
					most = open(held)
				}
			}
			fleet, stop = context.WithCancel(ctx)
			ended = join(fleet, t, wire.Token{URL: "http://" + url}.String(), n)
		}
		if strings.HasPrefix(lines.Text(), "error") {
			said = lines.Text()
		}
	}
	watchdog.Wait(t, "the coordinator", func() { cmd.Wait() })
	stop()
	_ = ended() // some may not have heard the end
	if len(held) < 300 {
		t.Skipf("%d idle sockets could be opened from 127.0.0.2", len(held))
	}
	if most > 40 {
		t.Errorf("one address holds %d connections, limit 40", most)
	}
	if said != "error <nil>" {
		t.Errorf("beside %d idle sockets it ended with %q", len(held), said)
	}
	if ck, err := model.ReadCheckpoint(filepath.Join(dir, "checkpoint")); err != nil || ck.Version != tinyJob(n).Rounds {
		t.Errorf("the exported checkpoint: %+v, %v", ck, err)
	}
}

// open counts the connections that the other side has not closed.
func open(conns []net.Conn) (n int) {
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		var timeout net.Error
		if _, err := c.Read(make([]byte, 1)); errors.As(err, &timeout) && timeout.Timeout() {
			n++
		}
	}
	return n
}

// TestHostileSocketsEnd: who connects and says nothing, sends a header slowly or a
// body, or stops reading what it asked for, is disconnected.
func TestHostileSocketsEnd(t *testing.T) {
	dir, base := t.TempDir(), tinyBase(t)
	synctest.Test(t, func(t *testing.T) {
		c, err := coordinator.New(coordinator.Config{Job: tinyJob(3), Dir: dir, Base: base, Hosts: []string{}})
		ok(t, err)
		big := http.FileServerFS(fstest.MapFS{"index.html": {Data: make([]byte, 8<<20)}})
		s, err := New(c, Config{Pages: big})
		ok(t, err)
		wires := pipes.New()
		counter := &countingListener{Listener: wires}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, &Endpoint{Listener: counter, counter: counter}) }()
		var held []net.Conn
		dial := func(say string) {
			near, far := net.Pipe()
			ok(t, wires.Connect(ctx, far))
			if say != "" {
				if _, err := near.Write([]byte(say)); err != nil {
					t.Fatal(err)
				}
			}
			held = append(held, near)
		}
		for range 8 {
			dial("")
			dial("GET / HTTP/1.1\r\nHost:")
			dial("GET / HTTP/1.1\r\nHost: coordinator.test\r\n\r\n")
			dial("GET /healthz HTTP/1.1\r\nHost: coordinator.test\r\nContent-Length: 1000\r\n\r\nx")
		}
		count := func() int {
			s.sockets.mu.Lock()
			defer s.sockets.mu.Unlock()
			return s.sockets.n
		}
		synctest.Wait()
		if n := count(); n != len(held) {
			t.Errorf("%d connections, want %d", n, len(held))
		}
		time.Sleep(2 * time.Minute)
		if n := count(); n != 0 {
			t.Errorf("%d of %d useless connections are open after two minutes", n, len(held))
		}
		cancel()
		if err := errors.Join(<-served, c.Close()); err != nil {
			t.Error(err)
		}
		for _, conn := range held {
			conn.Close()
		}
	})
}

// TestHostileCapOfAddress: one address has its share, and IPv6's is its /64.
func TestHostileCapOfAddress(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }
	s := newSockets(20000, 0, 1000)
	if s.most != 1000-sparedFiles || s.address != (1000-sparedFiles)/8 {
		t.Fatalf("%d connections, %d an address, of 1000 files", s.most, s.address)
	}
	var leave []func()
	for i := range 200 {
		out := s.enter(at(fmt.Sprintf("2001:db8:0:1::%x", i+1)))
		if (out != nil) != (i < s.address) {
			t.Fatalf("connection %d of a /64: %t", i, out != nil)
		}
		if out != nil {
			leave = append(leave, out)
		}
	}
	if s.enter(at("2001:db8:0:2::1")) == nil || s.enter(at("192.0.2.1")) == nil {
		t.Error("another address is kept out, too")
	}
	for _, out := range leave {
		out()
	}
	if s.enter(at("2001:db8:0:1::1")) == nil || s.n != 3 {
		t.Errorf("after they left: %d connections", s.n)
	}
	for range s.most { // a proxy on this machine stands for everybody
		s.enter(at("127.0.0.1"))
	}
	if s.n != s.most || s.enter(at("127.0.0.1")) != nil || s.enter(at("198.51.100.1")) != nil {
		t.Errorf("%d connections, limit %d", s.n, s.most)
	}
}
