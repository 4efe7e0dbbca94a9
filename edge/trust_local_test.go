package edge

import (
	"errors"
	"reflect"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// A coordinator chooses the address in its token, and a port of this machine may lead to it: without
// the owner's word it meets the policy for strangers.
func TestHostileForwardedPort(t *testing.T) {
	for _, url := range []string{"http://localhost:8080", "https://127.0.0.1:8443", "https://[::1]:8443/fl"} {
		cfg := Config{Token: wire.Token{URL: url}.String()}
		if _, err := cfg.reach(); err != nil || !reflect.DeepEqual(*cfg.Policy, DefaultPolicy()) {
			t.Errorf("%s: %+v, %v", url, cfg.Policy, err)
		}
		cfg = Config{Token: cfg.Token, TrustLocal: true}
		if _, err := cfg.reach(); err != nil || !reflect.DeepEqual(*cfg.Policy, LocalPolicy()) {
			t.Errorf("%s, trusted: %+v, %v", url, cfg.Policy, err)
		}
	}
	cfg := Config{Token: wire.Token{URL: "https://fl.example.org"}.String(), TrustLocal: true}
	if _, err := cfg.reach(); !errors.Is(err, ErrConfig) {
		t.Errorf("a coordinator elsewhere is called one's own: %v", err)
	}
}
