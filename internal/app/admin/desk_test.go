package admin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/app/checkup"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// The first screen is the same by the folder and by the address.
func TestOverview(t *testing.T) {
	dir, address, tokenFile := deskOf(t)
	ctx := watchdog.Context(t)
	if _, err := (Where{Dir: dir}).Desk(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("without an address: %v", err)
	}
	ok(t, os.WriteFile(filepath.Join(dir, AddressFile), []byte(strings.TrimPrefix(address, "http://")+"\n"), 0o600))
	for _, w := range []Where{{Dir: dir}, {Server: address, TokenFile: tokenFile}} {
		d, err := w.Desk()
		ok(t, err)
		o, err := d.Overview(ctx)
		ok(t, err)
		var text strings.Builder
		ok(t, o.Print(&text))
		for _, want := range []string{"job        tiny, waiting", "rounds     none of 2 has begun", "devices    0 enrolled, 0 connected", "privacy    nothing is spent",
			"budget     epsilon 2 ", "2 rounds are left, of which it holds 2", "ready      yes, "} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%+v: no %q in\n%s", w, want, &text)
			}
		}
		ok(t, d.Close())
	}
	ok(t, os.WriteFile(filepath.Join(dir, AddressFile), []byte("203.0.113.9:80\n"), 0o600))
	if _, err := (Where{Dir: dir}).Desk(); !errors.Is(err, ErrNotRunning) { // the token goes to this machine alone
		t.Errorf("another machine's address: %v", err)
	}
}

// A coordinator is looked at from outside and by what it finds of itself; each finding is told apart.
func TestDoctor(t *testing.T) {
	dir, address, tokenFile := deskOf(t)
	found := func(w Where) map[string]checkup.Check {
		r, err := w.Doctor(watchdog.Context(t))
		ok(t, err)
		by := map[string]checkup.Check{}
		for _, c := range r.Checks {
			by[c.Name] = c
		}
		return by
	}
	remote := found(Where{Server: address, TokenFile: tokenFile})
	if remote["coordinator"].Found != checkup.OK || remote["engine"].Found != checkup.OK || remote["backup"].Name != "" {
		t.Errorf("by address: %+v", remote)
	}
	if by := found(Where{Dir: dir}); by["coordinator"].Found != checkup.Unknown || by["backup"].Found != checkup.Warning || by["store"].Found != checkup.OK || by["secrets"].Found != checkup.OK {
		t.Errorf("by folder: %+v", by)
	}
	ok(t, os.WriteFile(filepath.Join(dir, AddressFile), []byte("127.0.0.1:1\n"), 0o600))
	ok(t, os.WriteFile(filepath.Join(dir, "copy.db"), nil, 0o600))
	ok(t, os.WriteFile(filepath.Join(dir, "tls.pem"), nil, 0o600))
	ok(t, os.Chmod(filepath.Join(dir, "tls.pem"), 0o644))
	by := found(Where{Dir: dir})
	if by["coordinator"].Found != checkup.Warning || by["backup"].Found != checkup.OK || by["secrets"].Found != checkup.Warning {
		t.Errorf("nobody there: %+v", by)
	}
	old := time.Now().Add(-30 * 24 * time.Hour)
	ok(t, os.Chtimes(filepath.Join(dir, "copy.db"), old, old))
	if by := found(Where{Dir: dir}); by["backup"].Found != checkup.Warning || !strings.Contains(by["backup"].Detail, old.Format(time.DateOnly)) {
		t.Errorf("an old copy: %+v", by)
	}
	if _, err := (Where{Dir: t.TempDir()}).Doctor(watchdog.Context(t)); err == nil {
		t.Error("an empty folder has no coordinator")
	}
}
