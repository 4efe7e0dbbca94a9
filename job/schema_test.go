//go:build !js

package job

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSchemaIsCurrent: the schema in git is what the generator writes.
func TestSchemaIsCurrent(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("go is not installed: the schema is not generated anew")
	}
	out := filepath.Join(t.TempDir(), "schema.json")
	if text, err := exec.CommandContext(t.Context(), goTool, "run", "./schema", "-out", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, Schema) {
		t.Errorf("schema.json is not what schema writes: run make generate (%v)", err)
	}
}

// TestSchemaHasDefaults: a default is in the schema as the parser has it. lab/readers holds the rest
// of the schema, read by somebody else's validator, against the parser.
func TestSchemaHasDefaults(t *testing.T) {
	defaults, err := json.Marshal(Default().Rounds)
	if err != nil || !bytes.Contains(Schema, append([]byte(`"default": `), defaults...)) {
		t.Errorf("no default of %s rounds: %v", defaults, err)
	}
}
