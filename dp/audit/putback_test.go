package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/mutant"
	"github.com/starling-fl/starling/internal/testkit/nightly"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// Flaws that were, or could be, in the release are found where they are put back: the
// audits of TestSoundJobs then find a flaw, not merely an error.
func TestPutBack(t *testing.T) {
	nightly.Only(t, "it builds the package once for each flaw, as make mutants does")
	f, err := os.Open("../../internal/tools/mutants/audit.txt")
	ok(t, err)
	defer f.Close()
	records, err := mutant.Read("audit.txt", f)
	ok(t, err)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	ok(t, err)
	if len(records) < 3 {
		t.Errorf("%d flaws", len(records))
	}
	for _, r := range records {
		t.Run(r.Name, func(t *testing.T) {
			v, out, err := r.Try(watchdog.Context(t), root)
			ok(t, err)
			if v != mutant.Killed || !strings.Contains(out, "FLAWED") {
				t.Errorf("%v:\n%s", v, out)
			}
		})
	}
}
