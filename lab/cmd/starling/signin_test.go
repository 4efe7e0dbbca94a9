package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
	"golang.org/x/oauth2"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// people are a provider's, with groups in their ID tokens.
type people struct {
	*storage.Storage
	groups map[string]any // by who
}

func (p people) SetUserinfoFromRequest(ctx context.Context, u *oidc.UserInfo, of op.IDTokenRequest, _ []string) error {
	if err := p.Storage.SetUserinfoFromRequest(ctx, u, of, []string{oidc.ScopeOpenID, oidc.ScopeEmail}); err != nil {
		return err
	}
	if groups, ok := p.groups[of.GetSubject()]; ok {
		u.AppendClaims("groups", groups)
	}
	return nil
}

// openIDProvider runs the example of zitadel/oidc, a certified provider, on an address.
func openIDProvider(t *testing.T, at string, groups map[string]any) {
	t.Helper()
	ln, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	issuer := "http://" + at + "/"
	store := people{storage.NewStorage(storage.NewUserStore(issuer)), groups}
	s := httptest.NewUnstartedServer(exampleop.SetupServer(issuer, store, slog.New(slog.DiscardHandler), false, op.WithLogger(slog.New(slog.DiscardHandler))))
	s.Listener.Close()
	s.Listener = ln
	s.Start()
	t.Cleanup(s.Close)
}

// browser follows redirects, and keeps cookies.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

// told sends a request that a browser would, and returns where it ended, and with what.
func told(t *testing.T, c *http.Client, method, address, token string, form url.Values) (*url.URL, int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(watchdog.Context(t), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Request.URL, res.StatusCode, string(b)
}

// TestSignInByOpenID: serve starts while its OpenID provider is away, and finds it. Somebody signs in
// from a job's dashboard, is named in the log of acts for what they do, and signs out; the command line
// takes an ID token in a file; who is in no group is told so, and the end of a login works once, and in
// the browser that began it.
func TestSignInByOpenID(t *testing.T) {
	for name, secret := range map[string]string{"public client": "", "client with a secret": "hush-hush"} {
		t.Run(name, func(t *testing.T) { signInByOpenID(t, secret) })
	}
}

func signInByOpenID(t *testing.T, secret string) {
	dir, binary := t.TempDir(), build(t)
	state, issuer, admin := filepath.Join(dir, "state"), freePort(t), freePort(t)
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(watchdog.Context(t), binary, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	client := "starling " + t.Name()
	if secret == "" {
		storage.RegisterClients(storage.NativeClient(client, "http://127.0.0.1/v1/oidc/callback", "http://127.0.0.1/cli"))
	} else {
		storage.RegisterClients(storage.WebClient(client, secret, "http://"+admin+"/v1/oidc/callback", "http://127.0.0.1/cli"))
	}
	run("job", "submit", "--dir", state, write("first.yaml", `
name: first
labels: [a, b]
rounds: 2
cohort: {population: 4, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`))
	args := []string{"serve", "--dir", state, "--listen", "127.0.0.1:0", "--admin", admin, "--oidc-issuer-url", "http://" + issuer + "/", "--oidc-client-id", client,
		"--oidc-operator", "federation", "--oidc-viewer", "staff"}
	if secret != "" {
		args = append(args, "--oidc-client-secret-file", write("secret", secret+"\n"))
	}
	server := start(t, binary, args...)
	server.await(t, `^sign-in by 127.0.0.1:\d+ fails and is tried again`)
	server.await(t, `^job first: join with`)
	at := "http://" + admin
	if _, code, body := told(t, browser(t), "GET", at+"/v1/oidc/login", "", nil); code != 503 || !strings.Contains(body, "cannot be reached") {
		t.Errorf("while it is away: %d %s", code, body)
	}
	openIDProvider(t, issuer, map[string]any{"id1": []string{"staff", "federation"}, "id2": []string{"other"}})
	server.await(t, `^operators sign in by 127.0.0.1:\d+`)

	// signIn goes through the provider's form, and returns where it ends; callback is how the provider
	// sent the browser back.
	signIn := func(c *http.Client, from, user string) (end *url.URL, code int, body, callback string) {
		t.Helper()
		form, _, _ := told(t, c, "GET", from, "", nil)
		if form.Host != issuer {
			t.Fatalf("a login leads to %s", form)
		}
		c.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if strings.HasSuffix(r.URL.Path, "/v1/oidc/callback") {
				callback = r.URL.String()
			}
			return nil
		}
		end, code, body = told(t, c, "POST", "http://"+issuer+"/login/username", "", url.Values{"username": {user}, "password": {"verysecure"}, "id": {form.Query().Get("authRequestID")}})
		return end, code, body, callback
	}
	ada := browser(t)
	end, code, said, callback := signIn(ada, at+"/jobs/first/v1/oidc/login", "test-user@127.0.0.1")
	session := end.Fragment
	if code != 200 || end.Host != admin || end.Path != "/jobs/first/dashboard" || !strings.HasPrefix(session, "starling-session-") {
		t.Fatalf("signed in: %d at %s: %s", code, end, said)
	}
	if _, code, body := told(t, ada, "GET", at+"/v1/admin/who.json", session, nil); code != 200 || !strings.Contains(body, `"name":"test-user@zitadel.ch (`+issuer+`)"`) || !strings.Contains(body, `"role":"operator"`) {
		t.Errorf("who: %d %s", code, body)
	}
	if _, code, _ := told(t, ada, "GET", at+"/v1/admin/who.json", "", nil); code != 401 {
		t.Errorf("by cookies alone: %d", code)
	}
	if _, code, body := told(t, ada, "POST", at+"/jobs/first/v1/admin/job/pause", session, nil); code != 200 {
		t.Errorf("a pause: %d %s", code, body)
	}
	for who, c := range map[string]*http.Client{"again": ada, "elsewhere": browser(t)} {
		if _, code, body := told(t, c, "GET", callback, "", nil); code != 401 || !strings.Contains(body, "did not begin this login") {
			t.Errorf("the end of a login, %s: %d %s", who, code, body)
		}
	}
	if _, code, body, _ := signIn(browser(t), at+"/v1/oidc/login?return=https://evil.example", "test-user2"); code != 403 || !strings.Contains(body, "in no group") {
		t.Errorf("in no group: %d %s", code, body)
	}

	// The command line: an ID token that a client of its own fetched.
	terminal := oauth2.Config{ClientID: client, ClientSecret: secret, RedirectURL: "http://127.0.0.1/cli", Scopes: []string{"openid"},
		Endpoint: oauth2.Endpoint{AuthURL: "http://" + issuer + "/auth", TokenURL: "http://" + issuer + "/oauth/token"}}
	verifier := oauth2.GenerateVerifier()
	c := browser(t)
	form, _, _ := told(t, c, "GET", terminal.AuthCodeURL("a state", oauth2.S256ChallengeOption(verifier)), "", nil)
	var back *url.URL
	c.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if back = r.URL; r.URL.Path == "/cli" {
			return http.ErrUseLastResponse
		}
		return nil
	}
	told(t, c, "POST", "http://"+issuer+"/login/username", "", url.Values{"username": {"test-user@127.0.0.1"}, "password": {"verysecure"}, "id": {form.Query().Get("authRequestID")}})
	answer, err := terminal.Exchange(watchdog.Context(t), back.Query().Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	file := write("id-token", answer.Extra("id_token").(string)+"\n")
	var jobs []struct{ Name, Want string } // the host follows what is wanted a little later
	if err := json.Unmarshal([]byte(run("job", "list", "--server", at, "--token-file", file, "--json")), &jobs); err != nil || len(jobs) != 1 || jobs[0].Want != "pause" {
		t.Errorf("%+v, %v", jobs, err)
	}
	run("job", "resume", "--server", at, "--token-file", file, "first")
	if log := run("operator", "log", "--dir", state); strings.Count(log, `"test-user@zitadel.ch (`+issuer+`)"`) != 2 {
		t.Errorf("the log of acts:\n%s", log)
	}
	if _, code, _ := told(t, c, "GET", at+"/v1/admin/who.json", answer.AccessToken, nil); code != 401 {
		t.Errorf("by an access token: %d", code)
	}
	if _, code, _ := told(t, ada, "POST", at+"/v1/oidc/logout", session, nil); code != 204 {
		t.Errorf("signing out: %d", code)
	}
	if _, code, body := told(t, ada, "GET", at+"/v1/admin/who.json", session, nil); code != 401 || !strings.Contains(body, "sign in again") {
		t.Errorf("signed out: %d %s", code, body)
	}
}
