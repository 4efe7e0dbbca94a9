package wellknown

import (
	"bytes"
	"crypto/ed25519"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/starling-fl/starling/job/statement"
)

type web func(r *http.Request) (int, string)

func (w web) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := w(r)
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Location": {"https://evil.example/"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func TestVerifyAsksTheDomain(t *testing.T) {
	const job, address = "triage", "https://learn.clinic.example"
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	a := statement.Statement{Organisation: "Clinics", Domain: "clinic.example", Address: address}
	a.Signature = a.Sign(job, key)
	file, err := statement.KeyFile(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	asked := ""
	ask := func(a statement.Statement, address string, status int, body string) error {
		asked = ""
		return Verify(t.Context(), &http.Client{Transport: web(func(r *http.Request) (int, string) {
			asked += r.URL.String() + " "
			return status, body
		})}, a, job, address)
	}
	if err := ask(a, address, http.StatusOK, string(file)); err != nil || asked != "https://clinic.example/.well-known/starling.json " {
		t.Fatalf("%v, asked %s", err, asked)
	}
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"no file":         {http.StatusNotFound, string(file)},
		"another address": {http.StatusFound, string(file)}, // which is not followed
		"no JSON":         {http.StatusOK, "<html>"},
		"a long file":     {http.StatusOK, string(file) + strings.Repeat(" ", statement.MostFile)},
		"another key":     {http.StatusOK, `{"keys":["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]}`},
	} {
		if err := ask(a, address, c.status, c.body); err == nil || strings.Contains(asked, "evil") {
			t.Errorf("%s: %v, asked %s", name, err, asked)
		}
	}
	// What cannot hold is not asked for.
	unsigned := a
	unsigned.Signature = ""
	if err := ask(unsigned, address, http.StatusOK, string(file)); err == nil || asked != "" {
		t.Errorf("unsigned: %v, asked %s", err, asked)
	}
	if err := ask(a, "https://evil.example", http.StatusOK, string(file)); err == nil || asked != "" {
		t.Errorf("elsewhere: %v, asked %s", err, asked)
	}
}
