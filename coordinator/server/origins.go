package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// mostOrigins bounds the list that each request of another origin is compared with.
const mostOrigins = 64

// ErrOrigin is an origin that cannot be allowed.
var ErrOrigin = errors.New("server: origin")

// ParseOrigin reads the origin of a site whose pages may be devices, as a browser would
// write it. It must be one site over TLS, or this machine:
//
//   - "*" would let anyone who writes a web page enrol its visitors, each from an address of
//     its own: the limits of an address, and who is behind a device, would mean nothing.
//   - over http anybody on a visitor's way can put a script into the page.
//   - "null" is the origin of every sandboxed frame and local file.
func ParseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case text == "*":
		return "", fmt.Errorf("%w *: any page could enrol its visitors; name each site", ErrOrigin)
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "",
		u.User != nil, strings.Trim(u.Path, "/") != "", strings.ContainsAny(text, "?#"):
		return "", fmt.Errorf("%w %q: want one as https://app.example.org", ErrOrigin, text)
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`*\%"'<>`, r) }):
		return "", fmt.Errorf("%w %q: its name must be written as browsers send it (xn--...), without patterns", ErrOrigin, text)
	case u.Scheme == "http" && !isLocal(text):
		return "", fmt.Errorf("%w %q: must be https, since over http the network can change its pages", ErrOrigin, text)
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
		host = "[" + ip.String() + "]"
	}
	if port != "" && port != map[string]string{"https": "443", "http": "80"}[u.Scheme] {
		host += ":" + port
	}
	return u.Scheme + "://" + host, nil
}

// parseOrigins reads all of them, without doubles.
func parseOrigins(texts []string) ([]string, error) {
	var out []string
	for _, text := range texts {
		origin, err := ParseOrigin(text)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, origin) {
			out = append(out, origin)
		}
	}
	if len(out) > mostOrigins {
		return nil, fmt.Errorf("%w: %d of them, limit %d", ErrOrigin, len(out), mostOrigins)
	}
	return out, nil
}

// forDevices reports whether a path is one that a device asks for: what is allowed to pages
// of another origin. The pages themselves and the operator's endpoints are not.
func forDevices(path string) bool {
	switch path {
	case wire.Path, "/v1/status", "/v1/job", "/v1/job/announced", "/v1/job/base", "/v1/job/programs":
		return true
	}
	return strings.HasPrefix(path, wire.BlobPath)
}

// shared answers pages of the origins that the operator allows (Fetch, "CORS protocol"),
// and hands everything else to next. There are no credentials to be sent along: what a
// device proves it proves inside its session, and a browser that was told to send cookies
// is not answered.
func (s *Server) shared(next, ours http.Handler) http.Handler {
	if len(s.origins) == 0 {
		return ours
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !forDevices(r.URL.Path) {
			ours.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin") // of every answer: a cache must not hand one page's to another
		origin := r.Header.Get("Origin")
		if !slices.Contains(s.origins, origin) || len(r.Header.Values("Origin")) != 1 || !s.isOurs(r.Host) {
			ours.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		if r.Method == http.MethodOptions { // a blob that goes on where it broke off asks with If-Range
			h.Set("Access-Control-Allow-Methods", "GET, HEAD")
			h.Set("Access-Control-Allow-Headers", "Range, If-Range")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.Set("Access-Control-Expose-Headers", "Content-Range")
		next.ServeHTTP(w, r)
	})
}
