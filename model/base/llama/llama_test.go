package llama

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset/calls"
	"github.com/starling-fl/starling/data/tokenizer"
)

// commandsSHA256 is the SHA-256 of the base's blob, and so its address. A base that `make
// commands` has remade needs the new value here.
const commandsSHA256 = "760ad06990383c8a97b0c90e6f1205ab91a2e1f63b94ffe5755690e85c10c3e7"

// maxBytes is the most that the base may add to an operator's program.
const maxBytes = 2500 << 10

func TestCommandsAreWhatWasMade(t *testing.T) {
	b, err := Commands()
	if err != nil {
		t.Fatal(err)
	}
	blob, err := b.Blob()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(blob)); got != commandsSHA256 || len(blob) > maxBytes {
		t.Errorf("the base has %d bytes and the SHA-256 %s, want %s", len(blob), got, commandsSHA256)
	}
	if got := strings.TrimSpace(Generator); got != calls.Version {
		t.Errorf("the base was trained on %s, the generator is now %s: run make commands", got, calls.Version)
	}
	values := 0
	for _, x := range b.Config.BaseTensors() {
		values += b.Len(x.Name)
	}
	if !b.Config.Causal() || values < 2_500_000 || values > 3_500_000 {
		t.Errorf("%d values: %+v", values, b.Config)
	}
	if _, err := tokenizer.ParseWithin(b.Tokenizer, b.Config.VocabSize); err != nil {
		t.Error(err)
	}
}
