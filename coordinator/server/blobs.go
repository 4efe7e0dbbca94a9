package server

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

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
	data, once := s.c.Blob([32]byte(raw))
	if data == nil {
		http.NotFound(w, r)
		return
	}
	if once {
		fetchedOnce(r)
	}
	h := w.Header()
	h.Set("ETag", fmt.Sprintf("%q", text))
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}
