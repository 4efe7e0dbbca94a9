//go:build linux

// Command soak runs real devices against a real coordinator for a time, while devices
// come and go and the coordinator is killed with SIGKILL again and again, and
// fails where a device ends, a round does not, or memory grows.
//
//	go run -C lab ./bench/soak -for 1h -devices 200 -churn 0.2 -kill 5m
//
// Devices are edge clients of this process over loopback sockets, each with an
// identity of its own; they train nothing in particular for a second or two. The
// coordinator is a process of its own, started again over the same folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	devices int
	lasts   time.Duration
	churn   float64       // of the devices, in each period of every
	every   time.Duration // of churn
	kill    time.Duration // between two kills
	stall   time.Duration // without any progress: a round that does not end
	rate    float64       // sampling rate
	dir     string
	verbose bool
}

func main() {
	var o options
	flag.IntVar(&o.devices, "devices", 200, "devices")
	flag.DurationVar(&o.lasts, "for", time.Hour, "how long devices come and go; a last minute follows in which all must work")
	flag.Float64Var(&o.churn, "churn", 0.2, "fraction of the devices that goes and comes back in each -every")
	flag.DurationVar(&o.every, "every", time.Minute, "period of -churn")
	flag.DurationVar(&o.kill, "kill", 5*time.Minute, "time between two SIGKILLs of the coordinator")
	flag.DurationVar(&o.stall, "stall", 3*time.Minute, "fail where the coordinator says nothing new for so long")
	flag.Float64Var(&o.rate, "rate", 1, "sampling rate of the cohort")
	flag.StringVar(&o.dir, "dir", "", "folder of the coordinator's state (default: a temporary one)")
	flag.BoolVar(&o.verbose, "v", false, "log what devices do")
	addr := flag.String("coordinate", "", "be the coordinator at this address (what the program starts itself with)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *addr != "" {
		err = coordinate(ctx, o, *addr)
	} else {
		err = soak(ctx, o)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// soak is the whole run: its error says everything that went wrong.
func soak(ctx context.Context, o options) error {
	if o.dir == "" {
		var err error
		if o.dir, err = os.MkdirTemp("", "starling-soak"); err != nil {
			return fmt.Errorf("temporary folder: %w", err)
		}
		defer os.RemoveAll(o.dir)
	}
	log := logger(o)
	k, err := newKeeper(o)
	if err != nil {
		return err
	}
	f, err := newFleet(o, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	kept := make(chan error, 1)
	go func() {
		err := k.run(ctx)
		kept <- err
		cancel(err)
	}()
	f.start(ctx, k.token())
	m := &memory{}
	fail := watch(ctx, o, k, f, m)
	cancel(nil)
	ended := f.wait()
	return errors.Join(fail, ended, ignoreCanceled(<-kept), k.check(), m.check())
}

// logger writes to standard error; with -v what is no failure, too.
func logger(o options) *slog.Logger {
	level := slog.LevelError
	if o.verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// watch churns, prints a line a minute, and ends with the time, or early where
// nothing moves any more.
func watch(ctx context.Context, o options, k *keeper, f *fleet, m *memory) error {
	began := time.Now()
	churn := time.NewTicker(max(time.Millisecond, time.Duration(float64(o.every)/max(1, o.churn*float64(o.devices)))))
	defer churn.Stop()
	sample := time.NewTicker(5 * time.Second)
	defer sample.Stop()
	line := time.NewTicker(min(time.Minute, max(10*time.Second, o.lasts/10)))
	defer line.Stop()
	fmt.Println("  time  rounds  abandoned  kills  gone  back  connected  coordinator  devices")
	var calm time.Time // since when nobody goes any more
	var before []int
	for {
		select {
		case <-ctx.Done():
			return ignoreCanceled(context.Cause(ctx))
		case <-churn.C:
			if calm.IsZero() && o.churn > 0 {
				f.churn(ctx, k.token())
			}
		case <-sample.C:
			m.sample(k, f)
			if still := time.Since(k.moved()); still > o.stall {
				return fmt.Errorf("no progress for %v: %s", still.Round(time.Second), k.said())
			}
			switch {
			case calm.IsZero() && time.Since(began) >= o.lasts:
				k.calm()
				calm, before = time.Now(), f.committed()
			case !calm.IsZero() && f.allBeyond(before):
				k.print(time.Since(began), f, m)
				fmt.Printf("all %d devices worked within %v of the end\n", o.devices, time.Since(calm).Round(time.Second))
				return nil
			case !calm.IsZero() && time.Since(calm) > o.stall:
				return fmt.Errorf("devices that no longer take part: %v", f.behind(before))
			}
		case <-line.C:
			k.print(time.Since(began), f, m)
		}
	}
}
