//go:build !js

package edge

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/quant"
)

// TestBadDifference: a difference that cannot be applied costs the fetch of the
// whole slice, and the device's log says why; a round that is over fetches nothing.
func TestBadDifference(t *testing.T) {
	h := newHouse(t)
	whole, now, err := quant.PackUpdate(make([]float32, 8), nil, "f32", "none")
	ok(t, err)
	plan := &wire.Plan{Round: 9, Values: 8, Slice: wire.Slice{Blob: h.blob(whole), Digest: quant.Digest(now)}}
	patch := h.blob([]byte("no difference to anything"))
	var log bytes.Buffer
	c := &client{
		cfg: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, events: &events{},
		blobs: &fetcher{client: blobClient{&http.Client{Transport: h}}, token: h.token, most: 1 << 20, down: new(atomic.Int64)},
	}
	w := work{plan: plan, patch: &patch, held: make([]float32, 8)}
	got, err := c.slice(t.Context(), nil, w)
	if err != nil || quant.Digest(got) != quant.Digest(now) {
		t.Errorf("slice of %d values, %v", len(got), err)
	}
	if said := log.String(); !strings.Contains(said, "round=9") || !strings.Contains(said, "err=") {
		t.Errorf("the log says %q", said)
	}

	over, end := context.WithCancel(t.Context())
	end()
	log.Reset()
	if _, err := c.slice(over, nil, w); err == nil || log.Len() != 0 {
		t.Errorf("after the round: %v, log %q", err, log.String())
	}
}
