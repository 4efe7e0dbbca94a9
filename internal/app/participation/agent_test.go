package participation

import (
	"runtime"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// TestAgent: whatever a build's version is, what a device calls itself is three words of
// printable ASCII that a Hello has room for.
func TestAgent(t *testing.T) {
	want := "starling/v1.2.3 " + runtime.GOOS + "/" + runtime.GOARCH + " wazero"
	if got := agent("v1.2.3"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, version := range []string{"", "a b\n\u202ec", strings.Repeat("long", 40)} {
		got := agent(version)
		if len(got) > wire.MaxName || len(strings.Fields(got)) != 3 || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("of %q: %q", version, got)
		}
	}
}
