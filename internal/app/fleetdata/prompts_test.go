package fleetdata

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Prompts with completions have no labels, and are divided evenly where they name no users.
func TestPromptsAreDivided(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talks.jsonl")
	if err := os.WriteFile(path, []byte(strings.Repeat(`{"prompt": "a", "completion": "b"}`+"\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := File{Path: path, Seed: 1, Clients: 4, Alpha: 1}.Load()
	if err != nil {
		t.Fatal(err)
	}
	n := len(d.Validation.Examples) + len(d.Test.Examples)
	for _, c := range d.Clients {
		if len(c.Examples) == 0 || c.Examples[0].Completion != "b" {
			t.Errorf("a client has %d examples", len(c.Examples))
		}
		n += len(c.Examples)
	}
	if n != 100 || len(d.Clients) != 4 || len(d.Test.Examples) < 5 {
		t.Errorf("%d examples of 100", n)
	}
}

// Commands are a fleet's data as any other.
func TestCommands(t *testing.T) {
	d, err := Commands(1, 6)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Clients) != 6 || len(d.Clients[0].Examples) != commandsPerClient || len(d.Test.Examples) != testCommands || len(d.Validation.Examples) != validationCommands {
		t.Errorf("%d clients of %d, %d, %d", len(d.Clients), len(d.Clients[0].Examples), len(d.Test.Examples), len(d.Validation.Examples))
	}
}
