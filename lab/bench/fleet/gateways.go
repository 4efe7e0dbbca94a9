//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/server"
)

// between is what the coordinator has beside it: NATS, and gateways between it and devices.
type between struct {
	nats  string
	at    []string // the gateways
	names []string // of parts
	parts []*exec.Cmd
}

// begin starts it; nothing where nobody needs NATS.
func begin(ctx context.Context, o options) (*between, error) {
	b := &between{}
	if o.Gateways == 0 {
		return b, nil
	}
	var err error
	if b.nats, err = b.part(ctx, "NATS", "nats"); err != nil {
		return nil, err
	}
	for i := range o.Gateways {
		at, err := b.part(ctx, fmt.Sprintf("gateway %d", i+1), fmt.Sprintf("gateway%d", i+1), "-nats", b.nats)
		if err != nil {
			return nil, errors.Join(err, b.end())
		}
		b.at = append(b.at, at)
	}
	return b, nil
}

// part starts a process, and yields its first line.
func (b *between) part(ctx context.Context, name, role string, args ...string) (string, error) {
	cmd, lines, err := start(ctx, role, args...)
	if err != nil {
		return "", err
	}
	b.names, b.parts = append(b.names, name), append(b.parts, cmd)
	return lines.Text(), nil
}

func (b *between) end() error {
	var err error
	for _, p := range b.parts {
		err = errors.Join(err, p.Process.Signal(os.Interrupt), p.Wait())
	}
	return err
}

// cpu is each part's processor time so far, in seconds (Linux).
func (b *between) cpu() (spent []float64) {
	for _, p := range b.parts {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
		if err != nil {
			return make([]float64, len(b.parts))
		}
		_, stat, _ = bytes.Cut(stat, []byte(") "))
		var ticks int
		for _, f := range bytes.Fields(stat)[11:13] { // utime and stime, in hundredths of a second
			n, _ := strconv.Atoi(string(f))
			ticks += n
		}
		spent = append(spent, float64(ticks)/100)
	}
	return spent
}

func differences(from, to []float64) (d []float64) {
	for i := range from {
		d = append(d, to[i]-from[i])
	}
	return d
}

// show prints what each server's process spent in each round.
func (b *between) show(over [][]float64) {
	if len(b.parts) == 0 {
		return
	}
	fmt.Print("\nProcessor seconds of all servers:\n\n| coordinator |")
	for _, name := range b.names {
		fmt.Printf(" %s |", name)
	}
	fmt.Print(" all |\n| --- |")
	for range b.names {
		fmt.Print(" --- |")
	}
	fmt.Println(" --- |")
	for _, parts := range over {
		all := 0.
		for _, s := range parts {
			fmt.Printf("| %.2f ", s)
			all += s
		}
		fmt.Printf("| %.2f |\n", all)
	}
}

// listen is where the coordinator hears devices.
func listen(o options) (*server.Endpoint, error) {
	if o.Gateways == 0 {
		return server.Listen("127.0.0.1:0", nil)
	}
	cert, err := server.Pinned(o.dir)
	if err != nil {
		return nil, err
	}
	nc, err := relay.Connect(relay.Access{URL: o.nats}, "owner", slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	l, err := relay.Listen(nc, func() bool { return true }, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	e := server.On(l, cert)
	e.URL = "https://127.0.0.1:1" // devices dial gateways
	return e, nil
}

// profiled writes a process's profile beside the coordinator's, where one is asked for.
func profiled(o options, name string) (end func(), err error) {
	if o.Profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(o.Profile + "." + name)
	if err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, pprof.StartCPUProfile(f)
}

// broker is NATS's process: its address on the first line.
func broker(ctx context.Context, o options) error {
	end, err := profiled(o, "nats")
	if err != nil {
		return err
	}
	defer end()
	s, err := nats.NewServer(&nats.Options{Host: "127.0.0.1", Port: nats.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(15 * time.Second) {
		return errors.New("NATS was not ready in time")
	}
	fmt.Println(s.ClientURL())
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// pass is a gateway's process: where devices dial it on the first line.
func pass(ctx context.Context, o options, name string) error {
	if err := files(uint64(o.Devices) + 200); err != nil {
		return err
	}
	end, err := profiled(o, name)
	if err != nil {
		return err
	}
	defer end()
	log := slog.New(slog.DiscardHandler)
	nc, err := relay.Connect(relay.Access{URL: o.nats}, name, log)
	if err != nil {
		return err
	}
	defer nc.Close()
	g, err := relay.NewGateway(nc, name, log)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e := server.On(l, nil)
	e.Bound()
	fmt.Println(l.Addr())
	followed := make(chan error, 1)
	go func() { followed <- g.Follow(ctx) }()
	return errors.Join(g.Serve(ctx, e.Listener), <-followed)
}
