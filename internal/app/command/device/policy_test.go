package device

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/usage"
)

func resolvePolicy(where string, args ...string) (*edge.Policy, string, error) {
	var p policyFlags
	fl := pflag.NewFlagSet("join", pflag.ContinueOnError)
	p.add(fl)
	if err := fl.Parse(args); err != nil {
		return nil, "", err
	}
	given := p.policy()
	return given.Toward(where)
}

// Flags win over the file, the file over what the address would relax.
func TestPolicyOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("shard: 12\nclip_norm: 3\nuplinks: [tern]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const here, there = "http://127.0.0.1:1", "https://example.org"
	for name, c := range map[string]struct {
		where   string
		args    []string
		shard   int
		corrupt float64
		clip    float64
		uplink  string
		told    bool
	}{
		"defaults":         {there, nil, 8, 0.05, 1000, "tern", false},
		"a forwarded port": {here, nil, 8, 0.05, 1000, "tern", true},
		"trusted":          {here, []string{"--trust-local"}, 3, 0, 1000, "tern", true},
		"file":             {there, []string{"--policy", file}, 12, 0.05, 3, "tern", false},
		"file, trusted":    {here, []string{"--trust-local", "--policy", file}, 12, 0.05, 3, "tern", false},
		"flags over file":  {here, []string{"--policy", file, "--shard=4", "--uplinks=fixed16"}, 4, 0.05, 3, "fixed16", false},
		"flag, trusted":    {here, []string{"--trust-local", "--corrupt=0.1"}, 3, 0.1, 1000, "tern", true},
		"zero is a value":  {there, []string{"--corrupt=0"}, 8, 0, 1000, "tern", false},
	} {
		p, note, err := resolvePolicy(c.where, c.args...)
		if err != nil || p.Shard != c.shard || p.Corrupt != c.corrupt || p.ClipNorm != c.clip || p.Uplinks[0] != c.uplink || (note != "") != c.told {
			t.Errorf("%s: %+v, note %q: %v", name, p, note, err)
		}
	}
	for text, want := range map[string]string{"shrad: 3\n": "shrad", "shard: 1\n": "shard", "corrupt: 1\n": "corrupt", "uplinks: []\n": "uplinks", "uplinks: !x\nshard: 8\n": "YAML"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := resolvePolicy(there, "--policy", file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := resolvePolicy(there, "--trust-local"); !errors.As(err, new(usage.Error)) || !strings.Contains(err.Error(), "not on this machine") {
		t.Errorf("trust in a coordinator elsewhere: %v", err)
	}
	if _, _, err := resolvePolicy(there, "--clip-norm=0"); err == nil || !strings.Contains(err.Error(), "clip_norm") {
		t.Errorf("%v", err)
	}
}

// TestHostilePeersFile: a list that is empty must not come to mean anybody.
func TestHostilePeersFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers")
	id := strings.Repeat("ab", 32)
	for text, want := range map[string]string{"": "is empty", "# nobody\n\n": "is empty", "abc\n": "64 hexadecimal", id + "\n" + strings.ToUpper(id): "lower case"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := resolvePolicy("https://example.org", "--peers", "@"+file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.WriteFile(file, []byte(id+" Ada's laptop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _, err := resolvePolicy("https://example.org", "--peers", strings.Repeat("cd", 32)+",@"+file)
	if err != nil || len(p.Peers) != 2 || p.Peers[1] != id {
		t.Errorf("%v, %v", p, err)
	}
	if _, _, err := resolvePolicy("https://example.org", "--peers", "@"+file+"x"); err == nil {
		t.Error("a list that is not there")
	}
	if _, _, err := resolvePolicy("https://example.org", "--peers", ""); err == nil {
		t.Error("an empty list was taken for no list")
	}
}
