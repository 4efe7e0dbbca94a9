//go:build !js

package nf4

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGenerated: the assembly in git is what asm writes.
func TestGenerated(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("go is not installed: the assembly is not generated anew")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), goTool, "run", "./asm", "-out", filepath.Join(dir, "avx2_amd64.s"),
		"-stubs", filepath.Join(dir, "avx2_amd64.go"), "-pkg", "nf4")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"avx2_amd64.s", "avx2_amd64.go"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// The first line holds the command, and with it the folder.
		_, got, _ = bytes.Cut(got, []byte("\n"))
		_, want, _ = bytes.Cut(want, []byte("\n"))
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what asm writes: run make generate", name)
		}
	}
}
