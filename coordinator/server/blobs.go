package server

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/internal/protocol/contentcoding"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// serveBlob answers GET and HEAD of BlobPath + hex SHA-256, with ranges.
func (s *Server) serveBlob(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	text := strings.TrimPrefix(r.URL.Path, wire.BlobPath)
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 32 || strings.ToLower(text) != text {
		http.Error(w, "a blob is named by 64 lower-case hexadecimal digits", http.StatusBadRequest)
		return
	}
	data, part := s.c.Blob([32]byte(raw))
	if data == nil {
		http.NotFound(w, r)
		return
	}
	meant(r, part)
	h := w.Header()
	h.Set("ETag", fmt.Sprintf("%q", text))
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	content := io.NewSectionReader(data, 0, data.Size())
	if part.Once() && data.Size() <= maxPacked {
		h.Add("Vary", "Accept-Encoding")
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" && contentcoding.Accepted(r.Header.Get("Accept-Encoding"), "gzip") {
			if packed := s.packed([32]byte(raw), data); packed != nil {
				h.Set("Content-Encoding", "gzip")
				h.Set("ETag", fmt.Sprintf("%q", text+"-gzip"))
				content = io.NewSectionReader(bytes.NewReader(packed), 0, int64(len(packed)))
			}
		}
	}
	http.ServeContent(w, r, "", time.Time{}, content)
}

// maxPacked bounds what is compressed for browsers: programs, whose code is half
// air. Weights are nearly as random as they are large.
const maxPacked = 2 << 20

// packed is a blob as gzip, made once; nil if a tenth of it would not be saved.
// Only what is fetched once is packed: there are as many of those as the job has
// ranks and hosts. A native device asks for nothing of it: it hashes and resumes what is stored.
func (s *Server) packed(name [32]byte, data coordinator.Blob) []byte {
	if known, ok := s.gzipped.Load(name); ok {
		return known.([]byte)
	}
	out, err := contentcoding.Gzip(io.NewSectionReader(data, 0, data.Size()))
	if err != nil || 10*int64(len(out)) > 9*data.Size() {
		out = nil
	}
	s.gzipped.Store(name, out)
	return out
}
