package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHostilePortForwardedCoordinator: a coordinator that is reached through a forwarded port (ssh -L, kubectl
// port-forward) has a loopback address. Without its owner's word a device takes part in nothing of it that it would
// refuse a stranger, and says what that word is; with it, it does.
func TestHostilePortForwardedCoordinator(t *testing.T) {
	c := serves(t, 1, "")
	folder := t.TempDir()
	data := filepath.Join(folder, "data.tsv")
	if err := os.WriteFile(data, []byte(strings.Repeat("one\tthe fox runs\ntwo\tthe dog sleeps\n", 8)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"join", c.token.String(), "--data", data, "--identity", filepath.Join(folder, "identity.pem"),
		"--accounts", filepath.Join(folder, "accounts"), "--cache", filepath.Join(folder, "cache")}
	d := runs(t, args...)
	code := d.exit()
	for _, want := range []string{"a forwarded port leads elsewhere", "--trust-local", "--own-noise=0", "--shard=3"} {
		if code != 1 || !strings.Contains(d.String(), want) {
			t.Errorf("ended with %d and does not say %q: %s", code, want, d)
		}
	}
	trusting := runs(t, append(args, "--trust-local")...)
	trusting.says("(?i)waiting")
	trusting.stop()
	trusting.exit()
}
