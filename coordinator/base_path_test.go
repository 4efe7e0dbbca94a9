package coordinator

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/job"
)

// A base beside the job file is found from whatever folder the job is started.
func TestLoadJobFindsTheBaseBesideIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bert"), 0o755); err != nil {
		t.Fatal(err)
	}
	for base, want := range map[string]string{"bert": filepath.Join(dir, "bert"), "./bert": filepath.Join(dir, "bert"), "org/name": "org/name"} {
		path := filepath.Join(dir, "job.yaml")
		if err := os.WriteFile(path, []byte("name: x\nlabels: [a, b]\nbase: "+base+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := job.Load(path)
		if err != nil || j.Base != want {
			t.Errorf("base %q is %q, want %q: %v", base, j.Base, want, err)
		}
	}
}
