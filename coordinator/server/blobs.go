package server

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/internal/wire"
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
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" && takesGzip(r.Header.Get("Accept-Encoding")) {
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
// ranks and hosts.
func (s *Server) packed(name [32]byte, data coordinator.Blob) []byte {
	if known, ok := s.gzipped.Load(name); ok {
		return known.([]byte)
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = io.Copy(z, io.NewSectionReader(data, 0, data.Size()))
	}
	var out []byte
	if err == nil && z.Close() == nil && 10*int64(b.Len()) <= 9*data.Size() {
		out = b.Bytes()
	}
	s.gzipped.Store(name, out)
	return out
}

// takesGzip reports whether an Accept-Encoding header names gzip, not with a weight
// of zero. A native device names nothing: it hashes and resumes what is stored.
func takesGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, ok := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			v, err := strconv.ParseFloat(q, 64)
			return !ok || err != nil || v > 0
		}
	}
	return false
}
