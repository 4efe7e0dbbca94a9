package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/starling-fl/starling/coordinator/internal/origin"
	"github.com/starling-fl/starling/coordinator/signin"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Signing in by an OpenID provider. What a browser gets of it is a session's token behind the
// dashboard's #, as every other operator's: the page sends it as a header, and no cookie opens
// anything. The one cookie there is binds a login to the browser that began it.

const (
	loginPath   = "/v1/oidc/login"
	loginCookie = "starling-login"
)

// open are the routes of signing in, for anybody; they do nothing where there is no issuer.
func (s *desk) open() []route {
	return []route{
		{"GET /v1/oidc/issuer.json", "", s.serveIssuer},
		{"GET " + loginPath, "", s.serveLogin},
		{"GET " + signin.CallbackPath, "", s.serveCallback},
		{"POST /v1/oidc/logout", "", s.serveLogout},
	}
}

// AdminAt sets where browsers have the dashboard, if not where it listens.
func (s *desk) AdminAt(address string) error {
	s.answersTo(address)
	if s.issuer == nil {
		return nil
	}
	return s.issuer.At(address)
}

// signedIn is the operator of a session or an ID token; nil for nobody's, with why.
func (s *desk) signedIn(ctx context.Context, given string) (*store.Operator, error) {
	if s.issuer == nil || !signin.IsToken(given) {
		return nil, nil
	}
	o, err := s.issuer.Operator(ctx, given)
	if err != nil {
		return nil, err
	}
	return &o, nil
}

// serveIssuer says by whom one signs in; null: by nobody.
func (s *desk) serveIssuer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	serveJSON(w, s.issuer)
}

// cookie is the login's: with nothing in it, it takes the browser's away. Lax, since the issuer sends
// the browser back from another site.
func (s *desk) cookie(value string) *http.Cookie {
	c := &http.Cookie{Name: loginCookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(signin.LoginLife.Seconds())}
	if s.issuer.Home().Scheme == "https" { // else this machine alone
		c.Name, c.Secure = "__Host-"+loginCookie, true // which no neighbour's page can set
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

func (s *desk) serveLogin(w http.ResponseWriter, r *http.Request) {
	leaving(w)
	if s.issuer == nil {
		http.NotFound(w, r)
		return
	}
	home := s.issuer.Home()
	if path := loginPath; !strings.EqualFold(r.Host, home.Host) && r.URL.RawQuery == "" {
		// The cookie has to be of the name that the issuer sends browsers back to. Once: a proxy may
		// have another.
		if s.job != "" {
			path = wire.JobPath + s.job + path
		}
		to := home.JoinPath(path)
		to.RawQuery = "again"
		w.Header().Set("Location", to.String())
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	to, cookie, err := s.issuer.Begin(s.job)
	if err != nil {
		http.Error(w, signin.Reason(err), http.StatusServiceUnavailable)
		return
	}
	http.SetCookie(w, s.cookie(cookie))
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func (s *desk) serveCallback(w http.ResponseWriter, r *http.Request) {
	leaving(w)
	if s.issuer == nil {
		http.NotFound(w, r)
		return
	}
	cookie := s.cookie("")
	value := ""
	if c, err := r.Cookie(cookie.Name); err == nil {
		value = c.Value
	}
	o, token, job, err := s.issuer.Finish(r.Context(), origin.Of(s.cameFrom(r)), value, r.URL.Query())
	if value != "" && !errors.Is(err, signin.ErrState) { // a stranger's link ends nobody's login
		http.SetCookie(w, cookie)
	}
	switch {
	case errors.Is(err, signin.ErrAway):
		http.Error(w, signin.Reason(err), http.StatusServiceUnavailable)
	case err != nil:
		s.logOf(r).Debug("a login was refused", "error", signin.Reason(err)) // strangers may have many
		http.Error(w, signin.Reason(err), http.StatusUnauthorized)
	case token == "":
		s.logOf(r).Warn("a login was refused: no group has a role", "operator", o.Name)
		http.Error(w, noRole(o), http.StatusForbidden)
	default:
		s.logOf(r).Info("signed in", "operator", o.Name, "role", o.Role, "until", o.Expires)
		path := "/dashboard"
		if job != "" {
			path = wire.JobPath + job + path
		}
		w.Header().Set("Location", s.issuer.Home().JoinPath(path).String()+"#"+token)
		w.WriteHeader(http.StatusSeeOther)
	}
}

// leaving keeps what is in an address out of caches and of what the next page is told.
func leaving(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
}

// noRole is for people whom the issuer knows, and nobody has let in.
func noRole(o store.Operator) string {
	return o.Name + " is signed in, but in no group that may look here: see serve --oidc-viewer"
}

// serveLogout ends the session whose token is shown.
func (s *desk) serveLogout(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && s.issuer != nil {
		s.issuer.SignOut(given)
	}
	w.WriteHeader(http.StatusNoContent)
}
