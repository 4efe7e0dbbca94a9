// Command starling fine-tunes models across many devices without seeing
// their data: it runs the coordinator, joins as an edge, simulates a fleet,
// and answers what a privacy budget or a quantization scheme costs.
//
// Every command that reports takes --json; progress goes to stderr, results
// to stdout. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // a second one ends the process at once
		n, _ := s.(syscall.Signal)
		cancel(interrupted{int(n)})
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
