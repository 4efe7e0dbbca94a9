//go:build !xla || !cgo

package main

import (
	"strings"
	"testing"
)

// A program that was built without XLA says how to build one that has it, before it
// does anything else.
func TestEngineSaysHowToBuild(t *testing.T) {
	dir := writeCheckpoint(t, 1)
	for _, command := range []string{
		"simulate", "worker --nats nats://localhost:1#AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "predict --checkpoint " + dir, "pretrain --generated --out " + t.TempDir(),
	} {
		args := append(strings.Fields(command), "--engine", "xla", "--pjrt", "/plugin.so")
		if code, _, stderr := runCLI(t, args...); code != 1 || !strings.Contains(stderr, "CGO_ENABLED=1 go build -C lab -tags xla") {
			t.Errorf("%s: exit %d, %s", command, code, stderr)
		}
	}
}
