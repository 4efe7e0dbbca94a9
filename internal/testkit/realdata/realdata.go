// Package realdata finds the data sets that tests read and the repository does not hold: folders of ../shared/data.
package realdata

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Required is the environment variable that makes a missing file a failure, as it is where the data belong.
const Required = "STARLING_DATA"

// Path returns where a file of ../shared/data is. If there is none the test is skipped, or fails if STARLING_DATA is
// "required".
func Path(t testing.TB, name string) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		// The laboratory's go.mod is below the repository's.
		if b, err := os.ReadFile(filepath.Join(root, "go.mod")); err == nil && strings.HasPrefix(string(b), "module github.com/starling-fl/starling\n") {
			break
		}
		if root == filepath.Dir(root) {
			t.Fatal("no go.mod of the core above the test's folder")
		}
		root = filepath.Dir(root)
	}
	path := filepath.Join(root, "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		if os.Getenv(Required) == "required" {
			t.Fatalf("the real data %s are required and not there: %v", name, err)
		}
		t.Skipf("NO REAL DATA: ../shared/data/%s is not beside the repository, so this is not tested here: %v", name, err)
	}
	return path
}
