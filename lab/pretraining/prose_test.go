package pretraining

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

// The base's folder records GeneratorVersion; anyone who changes what the
// generator writes must change the version and remake the base.
func TestGeneratorVersionPinsTheText(t *testing.T) {
	h := sha256.New()
	for line := range PublicCorpus(1, 300) {
		h.Write([]byte(line + "\n"))
	}
	invoices, err := dataset.Invoices(dataset.InvoiceConfig{Seed: 1, Split: "train", Clients: 3, PerClient: 30})
	if err != nil {
		t.Fatal(err)
	}
	for _, ex := range invoices.Examples {
		h.Write([]byte(ex.Text + "\n"))
	}
	pinned := map[string]string{
		"starling-text/1": "bc6a2884631922c52619c787e7856035bc6d01f82e96362cfec47a31af39c940",
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != pinned[dataset.GeneratorVersion] {
		t.Errorf("%s writes text with hash %s, pinned is %s: raise GeneratorVersion and remake the base", dataset.GeneratorVersion, got, pinned[dataset.GeneratorVersion])
	}
}
