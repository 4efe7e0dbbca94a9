package completions

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/testkit/authority"
)

var quiet = slog.New(slog.DiscardHandler)

// files are a certificate of localhost with its key, and a token.
func files(t *testing.T) (cert, key, token string, roots *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	cert, key, token = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "token")
	a := authority.New(t)
	a.Issue(t, 1, cert, key)
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return cert, key, token, a.Roots
}

// Others than this machine are served with TLS and a token alone.
func TestAddresses(t *testing.T) {
	cert, key, token, _ := files(t)
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, l := range map[string]Listening{
		"0.0.0.0:0 is not a loopback":   {Address: "0.0.0.0:0"},
		"example.org:80 is not":         {Address: "example.org:80", TokenFile: token},
		":0 is not a loopback address":  {Address: ":0", Cert: cert, Key: key},
		"--listen":                      {Address: "127.0.0.1"},
		"go together":                   {Address: "127.0.0.1:0", Cert: cert},
		"has 6 characters, want 16":     {Address: "127.0.0.1:0", TokenFile: short},
		"--tls-cert and --tls-key: cer": {Address: "0.0.0.0:0", Cert: token, Key: key, TokenFile: token},
	} {
		var wrong usage.Error
		if _, _, _, err := l.open(quiet); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
	for _, l := range []Listening{{Address: "127.0.0.1:0"}, {Address: "localhost:0", TokenFile: token}, {Address: "0.0.0.0:0", Cert: cert, Key: key, TokenFile: token}} {
		at, _, _, err := l.open(quiet)
		if err != nil {
			t.Errorf("%+v: %v", l, err)
			continue
		}
		_ = at.Close()
	}
	for _, c := range []Config{{0, time.Hour}, {99, time.Hour}, {1, 0}} {
		if err := Serve(t.Context(), nil, Listening{Address: "127.0.0.1:0"}, plain, c, quiet, nil); err == nil {
			t.Errorf("%+v", c)
		}
	}
}

// It answers whom shows the token, over TLS, and ends with its context.
func TestServe(t *testing.T) {
	cert, key, token, roots := files(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := Serve(ctx, learned(t), Listening{"127.0.0.1:0", token, cert, key}, plain, Config{2, time.Minute}, quiet, func(url string) error {
		go func() {
			defer cancel()
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			for _, c := range []struct {
				method, path, shown string
				code                int
				want                string
			}{
				{"POST", "/v1/completions", "Bearer 0123456789abcdef", 200, "dog. é"},
				{"POST", "/v1/completions", "Bearer 0123456789abcdee", 401, "Authorization: Bearer TOKEN"},
				{"POST", "/v1/completions", "0123456789abcdef", 401, "Authorization: Bearer TOKEN"},
				{"GET", "/metrics", "", 401, "Authorization: Bearer TOKEN"},
				{"GET", "/healthz", "", 200, "ok"},
			} {
				req, err := http.NewRequestWithContext(ctx, c.method, url+c.path, strings.NewReader(`{"prompt":"cat"}`))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Origin", "https://page.example.org")
				if c.shown != "" {
					req.Header.Set("Authorization", c.shown)
				}
				res, err := client.Do(req)
				if err != nil {
					t.Errorf("%+v: %v", c, err)
					continue
				}
				body, err := io.ReadAll(res.Body)
				if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != c.code || !bytes.Contains(body, []byte(c.want)) {
					t.Errorf("%+v: %d %s, %v", c, res.StatusCode, body, err)
				}
				if open := c.shown == "Bearer 0123456789abcdef"; res.Close == open {
					t.Errorf("%+v: the connection stays: %v, want %v", c, !res.Close, open)
				}
			}
		}()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
