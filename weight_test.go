package starling

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// What a reader has to read: lines of this repository's Go, without tests, that each program links on linux/amd64. A
// ceiling is a little above what there is; who raises one says in the commit what a user has for it.
func TestProgramsStayLight(t *testing.T) {
	for _, c := range []struct {
		module, program string
		ceiling         int
	}{
		{".", "./cmd/starling-edge", 90_050},
		{".", "./cmd/starling", 137_000},
		{"lab", "./cmd/starling", 156_800},
	} {
		cmd := exec.CommandContext(watchdog.Context(t), "go", "list", "-deps", "-json=Dir,GoFiles,Module", c.program)
		cmd.Dir = c.module
		cmd.Env = append(cmd.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list of %s in %s: %v", c.program, c.module, err)
		}
		lines := 0
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Dir     string
				GoFiles []string
				Module  *struct {
					Main    bool
					Replace *struct{ Path string }
				}
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module == nil || !p.Module.Main && p.Module.Replace == nil {
				continue // the standard library's, or others'
			}
			for _, name := range p.GoFiles {
				b, err := os.ReadFile(filepath.Join(p.Dir, name))
				if err != nil {
					t.Fatal(err)
				}
				lines += bytes.Count(b, []byte("\n"))
			}
		}
		t.Logf("%s of %s: %d lines", c.program, c.module, lines)
		if lines > c.ceiling || lines < c.ceiling*19/20 {
			t.Errorf("%s of %s links %d lines of ours, and its ceiling is %d: see docs/ARCHITECTURE.md", c.program, c.module, lines, c.ceiling)
		}
	}
}
