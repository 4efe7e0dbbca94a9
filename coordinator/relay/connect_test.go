package relay

import (
	"log/slog"
	"strings"
	"testing"
)

// What is in logs and on terminals has no password in it, nor a part of one.
func TestErrorsShowNoPassword(t *testing.T) {
	for _, u := range []string{"tls://owner:hidden%zz@127.0.0.1:1", "tls://owner:hidden/2@127.0.0.1:1", "tls://owner:hidden@127.0.0.1:port", "tls://owner:hidden@127.0.0.1:1"} {
		_, err := Connect(Access{URL: u}, "owner", slog.New(slog.DiscardHandler))
		if err == nil || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "zz") {
			t.Errorf("%v", err)
		}
	}
}
