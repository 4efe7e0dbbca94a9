//go:build linux

// Command gateways runs thousands of light devices behind three gateways, two owners of one
// PostgreSQL database and NATS, while devices come and go and one part after another is killed
// with SIGKILL, and fails where a round does not end, one is charged twice, ledgers disagree or
// memory grows.
//
//	go run -C lab ./bench/gateways -for 1h -devices 500 -drop 0.2 -kill 5m
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/starling-fl/starling/lab/loadtest"
)

type options struct {
	devices     int
	drop        float64
	lasts, kill time.Duration
	stall       time.Duration
	dir, binary string
}

func main() {
	var o options
	flag.IntVar(&o.devices, "devices", 500, "light devices")
	flag.Float64Var(&o.drop, "drop", 0.2, "chance that a device leaves in a round, and comes back")
	flag.DurationVar(&o.lasts, "for", time.Hour, "how long")
	flag.DurationVar(&o.kill, "kill", 5*time.Minute, "time between two kills")
	flag.DurationVar(&o.stall, "stall", 5*time.Minute, "fail where no round ends for so long")
	flag.StringVar(&o.binary, "binary", "../bin/starling", "the program of the laboratory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "gateways:", err)
		os.Exit(1)
	}
}

// soak is the whole run.
func soak(ctx context.Context, o options) (err error) {
	if o.dir, err = os.MkdirTemp("", "starling-gateways"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w (logs of all parts: %s)", err, o.dir)
			return
		}
		err = os.RemoveAll(o.dir)
	}()
	d, err := deploy(o)
	if d != nil {
		defer func() { err = errors.Join(err, d.end()) }()
	}
	if err != nil {
		return err
	}
	fleet, err := loadtest.New(loadtest.Config{Devices: o.devices, Drop: o.drop, By: d.at}, d.token)
	if err != nil {
		return err
	}
	playing, stop := context.WithCancel(ctx)
	played := make(chan struct{})
	go func() { defer close(played); fleet.Run(playing) }()
	err = d.watch(ctx)
	if err == nil {
		err = d.settled()
	}
	stop()
	<-played
	r := fleet.Report()
	fmt.Printf("devices: at most %d connected, %d connections broke, %d were sent away\n", r.Connected, r.Broken, r.Ended)
	if r.Ended > 0 {
		err = errors.Join(err, fmt.Errorf("%d devices were sent away: %s", r.Ended, r.Cause))
	}
	return err
}
