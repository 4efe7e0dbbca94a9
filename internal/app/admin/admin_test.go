package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
)

// deskOf serves a coordinator to its operators; it returns the folder, the address and a
// file with the folder's own token.
func deskOf(t *testing.T) (dir, address, tokenFile string) {
	t.Helper()
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "tiny", []string{"a", "b"}, 2
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 3, Alpha: 4, Sequence: 8}
	j.Cohort.Population, j.Cohort.Floor, j.Shard = 3, 3, job.Shard{Size: 64, Floor: 3}
	dir = t.TempDir()
	c, err := coordinator.New(coordinator.Config{Job: j, Dir: dir, Base: tiny.Base(t, 8, 1, 8), Hosts: []string{}})
	ok(t, err)
	t.Cleanup(func() { ok(t, c.Close()) })
	s, err := server.New(c, server.Config{})
	ok(t, err)
	s.Token("http://127.0.0.1:1", nil)
	desk := httptest.NewServer(s.AdminHandler())
	t.Cleanup(desk.Close)
	tokenFile = filepath.Join(t.TempDir(), "token")
	ok(t, os.WriteFile(tokenFile, []byte(s.AdminToken()+"\n"), 0o600))
	return dir, desk.URL, tokenFile
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opened is the fleet that a command with these flags has.
func opened(flags ...string) (Fleet, error) {
	var w Where
	fl := pflag.NewFlagSet("x", pflag.ContinueOnError)
	fl.StringVar(&w.Dir, "dir", "", "")
	fl.StringVar(&w.Server, "server", "", "")
	fl.StringVar(&w.TokenFile, "token-file", "", "")
	if err := fl.Parse(flags); err != nil {
		return nil, err
	}
	f, err := w.Open()
	if err != nil {
		return nil, err
	}
	return f, f.Close()
}

// TestFolderAndAddress: what an operator does over the admin address comes to the same as with the
// folder, and each sees what the other did.
func TestFolderAndAddress(t *testing.T) {
	dir, address, tokenFile := deskOf(t)
	local, err := store.OpenFleet(dir)
	ok(t, err)
	defer local.Close()
	over, err := dial(address, tokenFile)
	ok(t, err)
	defer over.Close()
	for i, h := range []Fleet{folder{local, dir}, over} {
		name := fmt.Sprint("operator ", i)
		o, token, err := h.AddOperator(name, store.RoleViewer, time.Hour)
		if err != nil || o.Name != name || !store.IsOperatorToken(token) {
			t.Fatalf("%T: %+v, %v", h, o, err)
		}
		if i, secret, err := h.Invite("note", 3, time.Hour); err != nil || i.Uses != 3 || i.Note != "note" || len(secret) != 32 {
			t.Errorf("%T: %+v, %v", h, i, err)
		}
		ok(t, h.Revoke(int64(i+1)))
		ok(t, h.RevokeOperator(name))
		for what, err := range map[string]error{"revoke an invitation": h.Revoke(99), "revoke an operator": h.RevokeOperator("nobody"),
			"ban": second(h.Ban("abcdef0123", "")), "pardon by too little": second(h.Pardon("ab"))} {
			if err == nil {
				t.Errorf("%T: %s of none", h, what)
			}
		}
		if _, _, err := h.AddOperator(name, store.RoleViewer, time.Hour); err == nil || !strings.Contains(err.Error(), "was given before") {
			t.Errorf("%T: a name twice: %v", h, err)
		}
	}
	both := func(of func(h Fleet) (any, error)) {
		t.Helper()
		a, err := of(folder{local, dir})
		ok(t, err)
		b, err := of(over)
		ok(t, err)
		if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
			t.Errorf("%+v\nand %+v", a, b)
		}
	}
	both(func(h Fleet) (any, error) { return h.Operators() })
	both(func(h Fleet) (any, error) { return h.Invitations() })
	both(func(h Fleet) (any, error) { return h.Devices() })
	both(func(h Fleet) (any, error) { return h.Reached() })
	both(func(h Fleet) (any, error) {
		acts, head, err := h.Acts()
		if len(acts) != 8 {
			t.Errorf("%T: %d acts", h, len(acts))
		}
		return fmt.Sprintf("%+v %x", acts, head), err
	})
}

func second[T any](_ T, err error) error { return err }

// TestHostileDesk: an address that is no coordinator's gets no token by a redirect, and what
// it answers is bounded and shown as text.
func TestHostileDesk(t *testing.T) {
	_, _, tokenFile := deskOf(t)
	stolen := false
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = stolen || r.Header.Get("Authorization") != "" }))
	defer thief.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		},
		"a page": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"escapes": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "\x1b[2J"+strings.Repeat("x", 1<<20), http.StatusTeapot)
		},
		"no hash": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"acts": [], "head": "abcd"}`) },
	} {
		desk := httptest.NewServer(answer)
		h, err := dial(desk.URL, tokenFile)
		ok(t, err)
		_, _, err = h.Acts()
		if err == nil || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 2*mostComplaint {
			t.Errorf("%s: %v", name, err)
		}
		ok(t, h.Close())
		desk.Close()
	}
	if stolen {
		t.Error("a redirect was given the token")
	}
}

// TestWhere: what is missing or contradicts itself is said, and a token is sent to no
// other machine in the clear.
func TestWhere(t *testing.T) {
	dir, address, tokenFile := deskOf(t)
	empty := filepath.Join(t.TempDir(), "empty")
	ok(t, os.WriteFile(empty, []byte("\n"), 0o600))
	two := filepath.Join(t.TempDir(), "two")
	ok(t, os.WriteFile(two, []byte("a\nb\n"), 0o600))
	for want, flags := range map[string][]string{
		"give --dir":             {},
		"or --server":            {"--dir", dir, "--server", address},
		"needs --token-file":     {"--server", address},
		"is for --server":        {"--dir", dir, "--token-file", tokenFile},
		"is not encrypted":       {"--server", "http://192.0.2.1:80", "--token-file", tokenFile},
		"want an address":        {"--server", "https://a@example.org", "--token-file", tokenFile},
		"as https://host:port":   {"--server", "example.org:443", "--token-file", tokenFile},
		"empty holds no token":   {"--server", address, "--token-file", empty},
		"two holds no token":     {"--server", address, "--token-file", two},
		"no such file":           {"--server", address, "--token-file", filepath.Join(dir, "none")},
		"no coordinator has run": {"--dir", t.TempDir()},
	} {
		if _, err := opened(flags...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", flags, err, want)
		}
	}
	if _, err := opened("--server", address, "--token-file", tokenFile); err != nil {
		t.Error(err)
	}
	var wrong usage.Error
	if _, err := opened(); !errors.As(err, &wrong) {
		t.Errorf("%T is no error of use", err)
	}
}
