package server

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/job/statement"
)

type site func() (int, string)

func (s site) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := s()
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// A visitor is told who asks, and that the domain confirms it once it does: it is not asked at every visit.
func TestAboutSaysWhoAsks(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	file, err := statement.KeyFile(key.Public().(ed25519.PublicKey))
	ok(t, err)
	j := tinyJob(3)
	j.About = statement.Statement{Organisation: "Clinics", Domain: "clinic.example", Address: "https://learn.clinic.example"}
	j.About.Signature = j.About.Sign(j.Name, key)
	c, s := serve(t, j, Config{})
	answers, asked := "no file", 0
	s.says.client = &http.Client{Transport: site(func() (int, string) {
		asked++
		return http.StatusOK, answers
	})}
	about := func() (a coordinator.About) {
		t.Helper()
		if w := ask(s.Handler(), "GET", "/v1/job"); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &a) != nil {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return a
	}
	for range 2 {
		if a := about(); a.Asks == nil || a.Asks.Organisation != "Clinics" || a.Verified || asked != 1 {
			t.Fatalf("%+v, verified %v, asked %d times", a.Asks, a.Verified, asked)
		}
	}
	answers, s.says.last = string(file), time.Now().Add(-askAgain)
	for range 2 {
		if a := about(); !a.Verified || asked != 2 {
			t.Fatalf("verified %v, asked %d times", a.Verified, asked)
		}
	}
	ok(t, c.Close())
}
