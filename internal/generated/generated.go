// Package generated is the test of files that a program in the tree writes: that
// they are what it writes now.
package generated

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Assembly runs ./asm of the package under test, as make generate does, and compares
// name_amd64.s and its stubs, name_amd64.go, with those in git.
func Assembly(t *testing.T, name, pkg string) {
	t.Helper()
	AssemblyFor(t, "./asm", "amd64", name, pkg)
}

// AssemblyFor is Assembly for another generator and processor.
func AssemblyFor(t *testing.T, generator, arch, name, pkg string) {
	t.Helper()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("go is not installed: the assembly is not generated anew")
	}
	dir, names := t.TempDir(), [2]string{name + "_" + arch + ".s", name + "_" + arch + ".go"}
	cmd := exec.CommandContext(t.Context(), goTool, "run", generator, "-out", filepath.Join(dir, names[0]),
		"-stubs", filepath.Join(dir, names[1]), "-pkg", pkg)
	cmd.Env = append(cmd.Environ(), "GOOS=", "GOARCH=") // the generator runs here, whatever is tested in an emulator
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range names {
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
			t.Errorf("%s is not what %s writes: run make generate", name, generator)
		}
	}
}
