package readers

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/job"
)

const goodJob = `
name: invoices
labels: [invoice, receipt]
rounds: 4
cohort:
  population: 24
deadlines:
  collect: 90s
privacy:
  epsilon: 3
`

// TestSchema holds the schema, read by somebody else's validator, against the
// parser: what parses is valid, and what has an unknown key or a wrong type is not.
func TestSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(job.Schema))
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
	example, err := os.ReadFile("../../examples/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{example, []byte(goodJob), []byte("name: x\nlabels: [a, b]\nprivacy: none\n")} {
		if _, err := job.Parse(bytes.NewReader(text)); err != nil {
			t.Error(err)
		}
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
		if _, err := job.Parse(bytes.NewReader([]byte(bad))); err == nil {
			t.Errorf("parsed: %q", bad)
		}
	}
}
