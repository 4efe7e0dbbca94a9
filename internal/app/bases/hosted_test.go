package bases

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/job"
)

// TestHosted: a submitted job reads folders of public/ and models of the cache, and no other path of the server.
func TestHosted(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	t.Setenv("HF_HUB_CACHE", cache)
	t.Chdir(dir) // a path from the working directory would be found
	commit := strings.Repeat("a", 40)
	cached := filepath.Join(cache, "models--owner--name", "snapshots", commit)
	for _, made := range []string{filepath.Join(dir, PublicFolder, "mine"), filepath.Join(dir, "secret"), filepath.Join(dir, "owner", "hidden"), cached,
		filepath.Join(cache, "models--owner--name", "refs")} {
		if err := os.MkdirAll(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(cache, "models--owner--name", "refs", "main"), []byte(commit), 0o600); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, PublicFolder, "mine")
	for _, good := range []struct{ base, start, wantBase, wantStart string }{
		{"", "", "", ""}, {embeddedDefault, "", embeddedDefault, ""}, {"mine", "mine", mine, mine}, {"owner/name", "", cached, ""},
	} {
		var j job.Job
		j.Base, j.Adapter.Start = good.base, good.start
		if got, err := Hosted(dir, j); err != nil || got.Base != good.wantBase || got.Adapter.Start != good.wantStart {
			t.Errorf("%+v: %q, %q, %v", good, got.Base, got.Adapter.Start, err)
		}
	}
	for _, bad := range []struct{ base, start, want string }{
		{filepath.Join(dir, "secret"), "", "base is"}, {"../secret", "", "base is"}, {"./secret", "", "owner/name"}, {"secret", "", "starling base fetch"},
		{"owner/hidden", "", "starling base fetch"}, {"", filepath.Join(dir, "secret"), "adapter.start is"}, {"", "../secret", "adapter.start is"}, {"", "secret", "put that folder to"},
	} {
		var j job.Job
		j.Base, j.Adapter.Start = bad.base, bad.start
		if got, err := Hosted(dir, j); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: %q, %q, %v", bad, got.Base, got.Adapter.Start, err)
		}
	}
}
