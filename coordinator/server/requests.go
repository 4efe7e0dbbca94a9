package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"regexp"
	"time"
)

// RequestID is the header that gives an answer the identifier under which it is logged. If a
// trusted proxy has given the request one, it is kept, so that the proxy's log and ours agree.
const RequestID = "X-Request-Id"

// requestID is a proxy's that is taken: nothing in it can end a line of a log, or be much of it.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

type requestKey struct{}

// requestOf is a request's number, "" outside of what identified serves.
func requestOf(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// logOf is the log for lines about a request.
func (s *desk) logOf(r *http.Request) *slog.Logger {
	if id := requestOf(r.Context()); id != "" {
		return s.log.With("request", id)
	}
	return s.log
}

// identified numbers requests, and logs each at the level debug: never its query, its body or
// what it shows, and its path as far as any of ours goes.
func (s *desk) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := ""
		if given := r.Header.Values(RequestID); len(given) == 1 && requestID.MatchString(given[0]) && s.cameFrom(r) != r.RemoteAddr {
			id = given[0] // a proxy that is trusted sent it
		}
		if id == "" {
			var b [8]byte
			rand.Read(b[:]) // ends the program where the system has no randomness
			id = hex.EncodeToString(b[:])
		}
		w.Header().Set(RequestID, id)
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, id))
		if !s.log.Enabled(r.Context(), slog.LevelDebug) {
			next.ServeHTTP(w, r)
			return
		}
		began := time.Now()
		defer func() {
			path := r.URL.Path
			s.logOf(r).Debug("request", "method", r.Method, "path", path[:min(len(path), 200)], "remote", s.cameFrom(r), "took", time.Since(began))
		}()
		next.ServeHTTP(w, r)
	})
}
