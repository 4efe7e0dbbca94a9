//go:build !js

package edge

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

var errDialled = errors.New("the device would enrol")

// A device whose data does not fit the job says so before it enrols: enrolled,
// it would be counted and waited for, and never come.
func TestMisfitDoesNotEnrol(t *testing.T) {
	misfit := &dataset.Set{Name: "mine.tsv", Labels: []string{"three"}, Examples: []dataset.Example{{Text: "fox", Line: 7}}}
	for name, c := range map[string]struct {
		about string
		data  *dataset.Set
		ends  bool
	}{
		"another label":     {`{"labels":["one","two"]}`, misfit, true},
		"no example":        {`{"labels":["one","two"]}`, &dataset.Set{Labels: testLabels}, true},
		"too many of whom":  {`{"labels":["one","two"],"providers":1}`, twoProviders(), true},
		"fits":              {`{"labels":["one","two"],"providers":2}`, twoProviders(), false},
		"says nothing":      {`{}`, misfit, false},
		"says nonsense":     {`<html>`, misfit, false},
		"does not know why": {``, misfit, false},
	} {
		h := newHouse(t)
		if c.about != "" {
			h.mu.Lock()
			h.blobs[aboutPath] = []byte(c.about)
			h.mu.Unlock()
		}
		key, err := NewIdentity()
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Token: h.token.String(), Identity: key, Data: Examples(c.data), Policy: central(), HTTP: &http.Client{Transport: h},
			Dial: func(context.Context, string) (Conn, error) { return nil, errDialled }}
		token, err := cfg.validate()
		if err != nil {
			t.Fatal(err)
		}
		client := &client{cfg: cfg, token: token, events: &events{}}
		blobs, done := newBlobClient(token, cfg.HTTP)
		client.blobs = &fetcher{client: blobs, token: token, down: &client.events.down}
		_, err = client.connect(t.Context())
		done()
		if errors.Is(err, errDialled) == c.ends || errors.Is(err, ErrData) != c.ends {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func twoProviders() *dataset.Set {
	return &dataset.Set{Labels: testLabels, Examples: []dataset.Example{{Text: "fox", Provider: "a"}, {Text: "dog", Provider: "b"}}}
}
