package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine/plugins"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/lab/queue"
	"github.com/starling-fl/starling/lab/sweep"
)

// queueFlags let a simulation use other processes.
type queueFlags struct {
	url, listen string
	access      queue.Access
	workers     int
	audit       float64
}

func (q *queueFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&q.url, "nats", "", "hand rounds to workers through this NATS cluster with JetStream (nats://host:port)")
	fl.StringVar(&q.listen, "nats-listen", "", "hand rounds to workers through a server in this process, at this host:port")
	fl.Float64Var(&q.audit, "audit", 0.02, "share of what workers send that this process computes again")
	q.access.Flags(fl)
}

// check checks the flags against each other; workers is --workers.
func (q *queueFlags) check(workers int) error {
	least := 1
	if q.url != "" || q.listen != "" {
		least = 0 // all of them may be elsewhere
	}
	switch {
	case q.url != "" && q.listen != "":
		return usage.Errorf("--nats and --nats-listen: a cluster or a server of our own, not both")
	case !(q.audit >= 0 && q.audit <= 1):
		return usage.Errorf("--audit is %v, must be in 0..1", q.audit)
	case workers < least:
		return usage.Errorf("--workers is %d, must be at least %d", workers, least)
	}
	q.workers = workers
	return nil
}

// serve lets the lab's rounds go through the queue, where one is asked for. stop
// ends what it started.
func (q *queueFlags) serve(ctx context.Context, a *command.App, lab *sweep.Lab, together int) (stop func(), err error) {
	if q.url == "" && q.listen == "" {
		return func() {}, nil
	}
	if together > 1 {
		return nil, usage.Errorf("--together is for one process: workers of a queue train each client alone")
	}
	var b *queue.Broker
	folder := ""
	if q.url != "" {
		b, err = queue.Connect(ctx, q.url, q.access)
	} else {
		if folder, err = os.MkdirTemp("", "starling-nats-*"); err != nil {
			return nil, err
		}
		b, err = queue.Embed(ctx, folder, q.listen)
	}
	clean := func() {
		if folder != "" {
			os.RemoveAll(folder)
		}
	}
	if err != nil {
		clean()
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(a.Stderr, nil))
	if b.URL != "" {
		fmt.Fprintf(a.Stderr, "workers: starling worker --nats %s\n", b.URL)
	}
	working, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	if q.workers > 0 {
		w := &queue.Worker{Version: a.Version, Engine: lab.Engine, Trainer: lab.Trainer, Parallel: q.workers, Log: log}
		go func() { done <- w.Run(working, b) }()
	} else {
		done <- nil
	}
	reducer := queue.NewReducer(b, a.Version, lab.Engine, log)
	reducer.Audit = queue.Audit{Share: q.audit, Trainer: lab.Trainer}
	own := lab.Trainer == nil && q.audit > 0
	if own {
		reducer.Audit.Trainer = edge.NewProgramTrainer(1)
	}
	lab.Collect = reducer.Collect
	return func() {
		if own {
			if err := reducer.Audit.Trainer.Close(); err != nil {
				log.Warn("ending audits", "error", err)
			}
		}
		cancel()
		if err := errors.Join(<-done, b.Close()); err != nil {
			log.Warn("ending the queue", "error", err)
		}
		clean()
	}, nil
}

func newWorkerCmd(a *command.App) *cobra.Command {
	var (
		url    string
		access queue.Access
		w      queue.Worker
		choice = plugins.Flags()
	)
	cmd := &cobra.Command{
		Use:   "worker --nats URL",
		Short: "Train clients of a simulation that runs elsewhere",
		Long: `Take clients of starling simulate and starling sweep from a NATS work queue, let
them contribute, and send back the sum. A worker needs nothing but the URL that the
simulation prints, with the key of its runs behind the #; it can be killed and started at any time
without changing what comes out. It must be the same build of this program and
compute with the engine that the simulation computes with.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if url == "" {
				return usage.Errorf("--nats is missing: the URL that starling simulate --nats-listen prints, or a cluster's")
			}
			if !queue.HasKey(url) {
				return usage.Errorf("--nats has no key: take the whole URL that starling simulate prints, with the # and the key behind it")
			}
			if w.Parallel < 1 {
				return usage.Errorf("--workers is %d, must be at least 1", w.Parallel)
			}
			if w.AckWait < time.Second || w.AckWait > time.Hour {
				return usage.Errorf("--ack-wait is %v, must be in 1s..1h", w.AckWait)
			}
			e, err := choice.Open()
			if err != nil {
				return err
			}
			w.Engine, w.Trainer = e.Name, e.Trainer(w.Parallel)
			defer func() { err = errors.Join(err, w.Trainer.Close()) }()
			b, err := queue.ConnectWorker(cmd.Context(), url, access)
			if err != nil {
				return err
			}
			var clients atomic.Int64
			w.Version, w.Log = a.Version, slog.New(slog.NewTextHandler(a.Stderr, nil))
			w.Done = func(n int) { fmt.Fprintf(a.Stderr, "%d clients trained\n", clients.Add(int64(n))) }
			fmt.Fprintln(a.Stderr, "waiting for clients to train; stop with Ctrl-C")
			return errors.Join(w.Run(cmd.Context(), b), b.Close())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&url, "nats", "", "URL of the queue")
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "parallel" { // as it was called, and is in scripts
			name = "workers"
		}
		return pflag.NormalizedName(name)
	})
	fl.IntVar(&w.Parallel, "workers", runtime.NumCPU(), "clients that train side by side")
	fl.DurationVar(&w.AckWait, "ack-wait", 15*time.Second, "how long what a dead worker had in hand waits for another")
	access.Flags(fl)
	choice.Add(fl)
	command.Settings(cmd)
	return cmd
}
