package edge

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }

func TestIdentityIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "identity.pem")
	key, err := LoadIdentity(path)
	ok(t, err)
	again, err := LoadIdentity(path)
	ok(t, err)
	if !bytes.Equal(key, again) {
		t.Error("identity changed")
	}
	info, err := os.Stat(path)
	ok(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	left, err := os.ReadDir(filepath.Dir(path))
	ok(t, err)
	if len(left) != 1 {
		t.Errorf("files beside it: %v", left)
	}
}

func TestIdentityOfTwoThatStartAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.pem")
	keys := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			if key, err := LoadIdentity(path); err == nil {
				keys[i] = key
			}
		})
	}
	watchdog.Wait(t, "eight loads of one identity", wg.Wait)
	for _, k := range keys {
		if len(k) == 0 || !bytes.Equal(k, keys[0]) {
			t.Fatal("two identities")
		}
	}
}

func TestIdentityFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	key, err := NewIdentity()
	ok(t, err)
	ok(t, os.WriteFile(open, FormatIdentity(key), 0o644))
	if _, err := LoadIdentity(open); !errors.Is(err, ErrIdentity) {
		t.Errorf("file that others can read: %v", err)
	}
	for name, text := range map[string]string{
		"empty": "", "other block": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"short": "-----BEGIN STARLING IDENTITY-----\nAAAA\n-----END STARLING IDENTITY-----\n",
		"more":  string(FormatIdentity(key)) + "more",
	} {
		path := filepath.Join(dir, "bad")
		ok(t, writeFile(path, text))
		if _, err := LoadIdentity(path); !errors.Is(err, ErrIdentity) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadIdentity(filepath.Join(open, "x")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("path below a file: %v", err)
	}
}
