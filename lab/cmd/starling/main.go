// Command starling links the core and the laboratory. It fine-tunes models across many devices without seeing
// their data: it runs the coordinator, joins as an edge, simulates a fleet,
// and answers what a privacy budget or a quantization scheme costs.
//
// Every command that reports takes --json; progress goes to stderr, results
// to stdout. Exit codes: docs/OPERATE.md.
package main

import "github.com/starling-fl/starling/internal/app/command"

func main() { command.Main(newRootCmd) }
