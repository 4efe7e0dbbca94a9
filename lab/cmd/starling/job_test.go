package main

import (
	"os"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/job"
)

func TestExampleJobIsAccepted(t *testing.T) {
	if _, err := job.Load("../../../examples/job.yaml"); err != nil {
		t.Fatal(err)
	}
}

// Every key of a job is in docs/JOB.md.
func TestJobKeysAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/JOB.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := strict.Encode(job.Default())
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	for line := range strings.Lines(string(text)) {
		key, _, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		keys++
		if !strings.Contains(string(doc), "`"+key+"`") && !strings.Contains(string(doc), "**"+key+"**") {
			t.Errorf("docs/JOB.md does not explain %q", key)
		}
	}
	if keys < 40 {
		t.Errorf("only %d keys found", keys)
	}
}
