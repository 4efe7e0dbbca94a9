//go:build !js

package job

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/starling-fl/starling/internal/strict"
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

// TestSchema holds the schema, read by somebody else's validator, against the
// parser: what parses is valid, and what has an unknown key or a wrong type is not.
func TestSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("job.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("job.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text []byte) error {
		var read any
		if err := strict.Decode(text, &read); err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	example, err := os.ReadFile("../examples/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{example, []byte(goodJob), []byte("name: x\nlabels: [a, b]\nprivacy: none\n")} {
		if err := valid(text); err != nil {
			t.Errorf("a job that parses: %v", err)
		}
	}
	for _, bad := range []string{
		"labels: [a, b]\n", "name: x\nlabels: [a, b]\ncolour: red\n", "name: x\nlabels: [a, b]\nprivacy: {clip_nrom: 1}\n",
		"name: x\nlabels: [a, b]\nrounds: many\n", "name: x\nlabels: a\n", "name: x\nlabels: [a, b]\ndeadlines: {collect: soon}\n",
		"name: x\nlabels: [a, b]\nprivacy: some\n", "name: x\nlabels: [a, b]\nprivacy: [none]\n",
	} {
		if err := valid([]byte(bad)); err == nil {
			t.Errorf("valid: %q", bad)
		}
		if _, err := Parse(bytes.NewReader([]byte(bad))); err == nil {
			t.Errorf("parsed: %q", bad)
		}
	}
	// Every default stands in the schema as the parser has it.
	defaults, err := json.Marshal(Default().Rounds)
	if err != nil || !bytes.Contains(Schema, append([]byte(`"default": `), defaults...)) {
		t.Errorf("no default of %s rounds: %v", defaults, err)
	}
}
