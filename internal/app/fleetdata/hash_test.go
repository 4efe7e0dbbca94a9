package fleetdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
)

// A file that names recordings is known by what is heard, too: another recording of the same
// name is other data.
func TestHashHearsWhatALineNames(t *testing.T) {
	dir := t.TempDir()
	lines := filepath.Join(dir, "data.jsonl")
	hash := func(high float32) string {
		t.Helper()
		sound, err := audio.EncodeWAV(&audio.Sound{Rate: 8000, Samples: []float32{0, high, 0, -high}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a.wav"), sound, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(lines, []byte(`{"audio":"a.wav","label":"x"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := dataset.Load(lines)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := Hash(lines, dataset.Columns{}, set)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first := hash(0.5)
	if again := hash(0.5); again != first {
		t.Error("the same recording has another hash")
	}
	if other := hash(0.25); other == first {
		t.Error("another recording has the same hash")
	}
}
