package server

import (
	"context"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator/signin"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/leaf/qrcode"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// openAPI describes every route of the operator's listener (OpenAPI 3.1).
//
//go:embed openapi.json
var openAPI []byte

// route is one request of the operator's listener, and the role that it needs.
type route struct {
	pattern string     // as http.ServeMux has it
	role    store.Role // "": anybody, with nothing to show
	serve   http.HandlerFunc
}

// whoKey is the key of the operator in a request's context.
type whoKey struct{}

// who returns the operator of an authorized request.
func who(r *http.Request) store.Operator {
	o, _ := r.Context().Value(whoKey{}).(store.Operator)
	return o
}

// shows returns the operator whose token a request has in "Authorization: Bearer"; nil for an
// unknown one. The error is signin.ErrRefused or ErrAway if an OpenID issuer's token fails. Cookies
// and addresses hold no token, so no page of another origin can make a browser send it.
func (s *desk) shows(r *http.Request) (*store.Operator, error) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, nil
	}
	if subtle.ConstantTimeCompare([]byte(given), []byte(s.adminToken)) == 1 {
		return &store.Operator{Name: store.ByFolder, Role: store.RoleAdmin}, nil
	}
	if !store.IsOperatorToken(given) { // nothing is looked up for what is none
		return s.signedIn(r.Context(), given)
	}
	f, err := s.fleet()
	if err != nil {
		return nil, err
	}
	o, err := f.OperatorByToken(given)
	if err = errors.Join(err, f.Close()); errors.Is(err, store.ErrUnknown) || err == nil && o.Job != "" && o.Job != s.job {
		return nil, nil
	}
	return &o, err
}

// ofFleet refuses operators of a single job what belongs to the whole fleet: the devices of all jobs.
func ofFleet(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if who(r).Job != "" {
			http.Error(w, "this link shows one job, and the devices are the whole fleet's", http.StatusForbidden)
			return
		}
		serve(w, r)
	}
}

// asks admits requests with the token of an operator who has the role.
func (s *desk) asks(role store.Role, serve http.HandlerFunc) http.HandlerFunc {
	if role == "" {
		return serve
	}
	return func(w http.ResponseWriter, r *http.Request) {
		o, err := s.shows(r)
		switch {
		case errors.Is(err, signin.ErrAway):
			http.Error(w, signin.Reason(err), http.StatusServiceUnavailable)
		case errors.Is(err, signin.ErrRefused):
			w.Header().Set("WWW-Authenticate", `Bearer realm="starling", error="invalid_token"`)
			http.Error(w, signin.Reason(err), http.StatusUnauthorized)
		case err != nil:
			s.logOf(r).Error("the operators cannot be read", "error", err)
			http.Error(w, "the operators cannot be read: see the coordinator's log", http.StatusInternalServerError)
		case o == nil:
			w.Header().Set("WWW-Authenticate", `Bearer realm="starling"`)
			http.Error(w, "the operator's token is missing, wrong, expired or revoked", http.StatusUnauthorized)
		case o.Role == "":
			http.Error(w, noRole(*o), http.StatusForbidden)
		case !o.Role.Allows(role):
			http.Error(w, fmt.Sprintf("%s has the role %s; this needs the role %s: see starling operator add", o.Name, o.Role, role), http.StatusForbidden)
		default:
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			serve(w, r.WithContext(context.WithValue(r.Context(), whoKey{}, *o)))
		}
	}
}

// mostAsked bounds a request's body, in bytes.
const mostAsked = 4096

// told reads a request's JSON into v, whose keys alone are accepted. On failure it answers the request.
func told(w http.ResponseWriter, r *http.Request, v any) bool { return toldMore(w, r, v, mostAsked) }

// toldMore is told with a bound of most bytes.
func toldMore(w http.ResponseWriter, r *http.Request, v any, most int64) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil && dec.More() {
		err = errors.New("more than one value")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		http.Error(w, fmt.Sprintf("the request's JSON: %v", err), http.StatusBadRequest)
		return false
	}
	return true
}

// life is seconds as a duration; 0 if it is out of range.
func life(seconds int64) time.Duration {
	if seconds < 0 || seconds > 1<<32 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// serveWho serves the operator of the request.
func (s *desk) serveWho(w http.ResponseWriter, r *http.Request) {
	o := who(r)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": o.Name, "role": o.Role, "job": o.Job}) // the reader is gone: nobody to tell
}

func (s *desk) serveOperators(w http.ResponseWriter, r *http.Request) {
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		all, err := f.Operators()
		return slices.DeleteFunc(all, func(o store.Operator) bool { return mayName(who(r).Role, o.Role) != nil }), err
	})
}

// Added is a new operator and its token, which is never shown again.
type Added struct {
	store.Operator
	Token string `json:"token"`
}

func (s *desk) serveAddOperator(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name    string     `json:"name"`
		Role    store.Role `json:"role"`
		Seconds int64      `json:"seconds"`
	}
	if !told(w, r, &in) {
		return
	}
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		if err := mayName(who(r).Role, in.Role); err != nil {
			return nil, err
		}
		o, token, err := f.Within(s.job).AddOperator(in.Name, in.Role, life(in.Seconds))
		return Added{o, token}, err
	})
}

func (s *desk) serveRevokeOperator(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		role, err := roleOf(f, name)
		if err == nil {
			err = mayName(who(r).Role, role)
		}
		if err != nil {
			return nil, err
		}
		return map[string]string{"revoked": name}, f.RevokeOperator(name)
	})
}

// Acts are the acts of operators, and the last hash of their chain.
type Acts struct {
	Acts []store.Act `json:"acts"`
	Head string      `json:"head"`
}

func (s *desk) serveActs(w http.ResponseWriter, r *http.Request) {
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		acts, head, err := f.Acts()
		return Acts{acts, fmt.Sprintf("%x", head)}, err
	})
}

func (s *desk) serveInvitations(w http.ResponseWriter, r *http.Request) {
	s.withFleet(w, r, func(f *store.Fleet) (any, error) { return f.Invitations() })
}

// Reached returns the address by which devices reach the coordinator, as serve last stored it.
type Reached struct {
	Token string `json:"token"` // without a secret; empty before
}

func (s *desk) serveReached(w http.ResponseWriter, r *http.Request) {
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		token, err := s.reached(f)
		return Reached{token}, err
	})
}

// reached returns the token by which devices reach the desk's jobs, without a secret; empty before
// serve has stored one.
func (s *desk) reached(f *store.Fleet) (token string, err error) {
	if s.leads != "" {
		return s.leads, nil
	}
	return f.Reached()
}

// Invited is a new invitation, and the secret that its token contains.
type Invited struct {
	store.Invitation
	Secret []byte `json:"secret"`
	// Link is the join page's address with the whole token behind its #, SVG the same as a QR code; empty until
	// serve knows how devices reach it.
	Link string `json:"link,omitempty"`
	SVG  string `json:"svg,omitempty"`
}

// invited adds to an invitation its link and QR code, at the address that serve stored last.
func (s *desk) invited(f *store.Fleet, i store.Invitation, secret []byte) (Invited, error) {
	out := Invited{Invitation: i, Secret: secret}
	reached, err := s.reached(f)
	if err != nil || reached == "" {
		return out, err
	}
	t, err := wire.ParseToken(reached)
	if err != nil {
		return out, err
	}
	t.Secret = secret
	out.Link = strings.TrimRight(t.URL, "/") + "/#" + t.String()
	if c, err := qrcode.New(out.Link); err == nil { // a link that is too long has none
		out.SVG = c.SVG()
	}
	return out, nil
}

func (s *desk) serveInvite(w http.ResponseWriter, r *http.Request) {
	in := struct {
		Note    string `json:"note"`
		Uses    int    `json:"uses"`
		Seconds int64  `json:"seconds"`
	}{Uses: 1, Seconds: 7 * 24 * 3600}
	if !told(w, r, &in) {
		return
	}
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		i, secret, err := f.Invite(in.Note, in.Uses, life(in.Seconds))
		if err != nil {
			return nil, err
		}
		return s.invited(f, i, secret)
	})
}

func (s *desk) serveRevokeInvitation(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		http.Error(w, "an invitation is named by its number", http.StatusBadRequest)
		return
	}
	s.withFleet(w, r, func(f *store.Fleet) (any, error) { return map[string]int64{"revoked": id}, f.Revoke(id) })
}

func (s *desk) serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // the reader is gone: nobody to tell
}
