package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/model"
)

func TestFindInTheLocalCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("HF_HUB_CACHE", cache)
	const revision = "0123456789abcdef0123456789abcdef01234567"
	repo := filepath.Join(cache, "models--org--small-bert")
	snapshot := filepath.Join(repo, "snapshots", revision)
	if err := os.MkdirAll(snapshot, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Find("org/small-bert"); err == nil || !strings.Contains(err.Error(), "starling base fetch org/small-bert") {
		t.Errorf("without a revision: %v", err)
	}
	if err := model.WriteFiles(filepath.Join(repo, "refs"), map[string][]byte{"main": []byte(revision)}); err != nil {
		t.Fatal(err)
	}
	if dir, err := Find("org/small-bert"); err != nil || dir != snapshot {
		t.Errorf("found %q, %v", dir, err)
	}
	if name, at := Published(snapshot); name != "org/small-bert" || at != revision {
		t.Errorf("%s is %q at %q", snapshot, name, at)
	}
	for _, dir := range []string{cache, repo, filepath.Join(repo, "snapshots"), filepath.Join(cache, "x", "snapshots", revision), filepath.Join(cache, "models--a--b--c", "snapshots", revision)} {
		if name, at := Published(dir); name+at != "" {
			t.Errorf("%s is %q at %q", dir, name, at)
		}
	}
	if dir, err := Find(snapshot); err != nil || dir != snapshot {
		t.Errorf("a folder: %q, %v", dir, err)
	}
	for _, name := range []string{"../escape", "org/other", "a/b/c", ""} {
		if dir, err := Find(name); err == nil {
			t.Errorf("%q was found at %s", name, dir)
		}
	}
	// A revision that is not a hash must not lead out of the snapshots.
	if err := model.WriteFiles(filepath.Join(repo, "refs"), map[string][]byte{"main": []byte("../../..")}); err != nil {
		t.Fatal(err)
	}
	if dir, err := Find("org/small-bert"); err == nil {
		t.Errorf("a revision that is not a hash led to %s", dir)
	}
}
