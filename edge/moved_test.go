//go:build !js

package edge

import (
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/model"
)

// line is a way to the house on which connections that carry one blob break.
type line struct {
	*house
	path string

	mu    sync.Mutex
	cuts  []int  // bytes that all connections together carry before the next one breaks
	last  func() // is called when the last one does
	moved int
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.house.RoundTrip(r)
	if err == nil && r.URL.Path == l.path {
		resp.Body = &carried{resp.Body, l}
	}
	return resp, err
}

type carried struct {
	io.ReadCloser
	line *line
}

func (c *carried) Read(p []byte) (int, error) {
	l := c.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.cuts) > 0 {
		if p = p[:min(len(p), l.cuts[0]-l.moved)]; len(p) == 0 {
			if l.cuts = l.cuts[1:]; len(l.cuts) == 0 {
				l.last()
			}
			return 0, io.ErrUnexpectedEOF
		}
	}
	n, err := c.ReadCloser.Read(p)
	l.moved += n
	return n, err
}

// A decoder's base in NF4 goes over the line once, whatever breaks: a connection, or the device's process, whose next
// one goes on where that was; a later one asks for nothing of it.
func TestBaseMovesOnce(t *testing.T) {
	base, err := tiny.Decoder(t, 1024, 32).Pack() // smaller ones are kept in memory
	ok(t, err)
	blob, err := base.Blob()
	ok(t, err)
	h := newHouse(t)
	h.job.Base, h.job.Labels, h.job.Task = h.blob(blob), nil, string(model.TaskCausal)
	h.job.Published.Tokenizer = sha256.Sum256(base.Tokenizer)
	h.announce()
	l := &line{house: h, path: wire.BlobPath, cuts: []int{len(blob) / 3, len(blob) / 2}}
	for path, data := range h.blobs {
		if len(data) == len(blob) {
			l.path = path
		}
	}
	dir := t.TempDir()
	config := func() Config {
		cfg := h.config(&constant{})
		cfg.HTTP, cfg.CacheDir = &http.Client{Transport: l}, dir
		cfg.Data = Examples(&dataset.Set{Examples: []dataset.Example{{Text: strings.Repeat("fox ", 4)}}})
		return cfg
	}
	var d *device
	dead := make(chan struct{})
	l.last = func() { close(dead) }
	d = h.start(config())
	h.admit(false)
	<-dead // while it waits to ask a third time
	d.cancel()
	if err := d.wait(t); err == nil || l.moved != len(blob)/2 {
		t.Fatalf("%d of %d bytes came, and the device ended: %v", l.moved, len(blob), err)
	}
	for range 2 {
		d = h.start(config())
		if m, ready := h.admit(false).read().(*wire.Ready); !ready {
			t.Fatalf("the device sent %#v", m)
		}
		d.cancel()
		_ = d.wait(t)
		if l.moved != len(blob) {
			t.Errorf("%d bytes came of a base of %d", l.moved, len(blob))
		}
	}
}
