// Command starling fine-tunes models across many devices without seeing
// their data: it runs the coordinator, joins as an edge, simulates a fleet,
// and answers what a privacy budget or a quantization scheme costs.
//
// Every command that reports takes --json; progress goes to stderr, results
// to stdout. Exit codes: 0 done, 1 failed, 2 wrong usage.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
