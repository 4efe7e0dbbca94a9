package accounts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two files on one machine take part beside each other; the same one twice, or
// one identity for both, is refused by the name of its file.
func TestIdentityOfEachFile(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	folder := t.TempDir()
	var paths []string
	for _, name := range []string{"a.tsv", "b.tsv"} {
		data := filepath.Join(folder, name)
		if err := os.WriteFile(data, []byte("x\ty\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		path, err := IdentityPath(data)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	again, err := IdentityPath(filepath.Join(folder, ".", "a.tsv"))
	if err != nil || again != paths[0] || paths[0] == paths[1] {
		t.Errorf("identities %q, then %q: %v", paths, again, err)
	}
	key, release, err := TakeIdentity(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	other, releaseOther, err := TakeIdentity(paths[1])
	if err != nil || other.Equal(key) {
		t.Fatalf("the other file: %v", err)
	}
	if _, _, err := TakeIdentity(paths[0]); err == nil || !strings.Contains(err.Error(), paths[0]) || !strings.Contains(err.Error(), "--identity") {
		t.Errorf("twice at once: %v", err)
	}
	for _, r := range []func() error{release, releaseOther} {
		if err := r(); err != nil {
			t.Error(err)
		}
	}
	_, release, err = TakeIdentity(paths[0])
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
