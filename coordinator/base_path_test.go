package coordinator

import (
	"os"
	"path/filepath"
	"testing"
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
		job, err := LoadJob(path)
		if err != nil || job.Base != want {
			t.Errorf("base %q is %q, want %q: %v", base, job.Base, want, err)
		}
	}
}
