package service

import (
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// No browser is sent to a page by which it cannot join.
func TestForBrowsers(t *testing.T) {
	if got := forBrowsers("", "https://fl.example", "starling2_x"); got != "or open https://fl.example/#starling2_x in a browser\n" {
		t.Errorf("%q", got)
	}
	if got := forBrowsers("browsers cannot join: no pages", "https://fl.example", "starling2_x"); got != "" {
		t.Errorf("despite a fault: %q", got)
	}
}

// An invitation is a link for a browser where there are pages.
func TestLink(t *testing.T) {
	token := wire.Token{URL: "http://127.0.0.1:8080"}.String()
	for name, c := range map[string]struct{ fault, token, want string }{
		"pages":    {"", token, "or open http://127.0.0.1:8080/#" + token + " in a browser\n"},
		"no pages": {"built without", token, ""},
		"no token": {"", "starling2_x", ""},
	} {
		if got := link(c.fault, c.token); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
