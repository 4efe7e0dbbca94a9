// Package assembly holds the programs that write the core's assembly, a folder each, and the test
// that what is in git is what they write now.
package assembly

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestGenerated(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("go is not installed: the assembly is not generated anew")
	}
	for _, of := range []struct{ generator, file, pkg string }{
		{"nf4", "quant/nf4/avx2_amd64", "nf4"},
		{"kernel", "wasm/kernel/tile_amd64", "kernel"},
		{"neon", "wasm/kernel/tile_arm64", "kernel"},
	} {
		t.Run(of.generator, func(t *testing.T) {
			made := filepath.Join(t.TempDir(), filepath.Base(of.file))
			cmd := exec.CommandContext(t.Context(), goTool, "run", "./"+of.generator, "-out", made+".s", "-stubs", made+".go", "-pkg", of.pkg)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, end := range []string{".s", ".go"} {
				got, err := os.ReadFile(made + end)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(of.file)) + end)
				if err != nil {
					t.Fatal(err)
				}
				// The first line holds the command, and with it the folder.
				_, got, _ = bytes.Cut(got, []byte("\n"))
				_, want, _ = bytes.Cut(want, []byte("\n"))
				if !bytes.Equal(got, want) {
					t.Errorf("%s%s is not what %s writes: run make generate", of.file, end, of.generator)
				}
			}
		})
	}
}
