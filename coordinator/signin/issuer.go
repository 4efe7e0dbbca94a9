// Package signin lets operators in by an OpenID provider (OpenID Connect Core 1.0): it verifies ID
// tokens that are shown as bearer tokens, signs people in from a browser by the authorization code
// flow with PKCE, and says which role their groups have. It holds no HTTP handler of its own:
// coordinator/server does.
//
//	i, err := signin.New(cfg)
//	...
//	o, err := i.Operator(ctx, token) // the role that the token's groups have
//
// # Threat model
//
// Strangers show tokens of other issuers, for other clients, expired, unsigned, signed with what is
// public or with keys that nobody has, and long ones. They follow links to the end of a login that
// somebody else began, and begin logins that they do not end. None of it makes this process ask the
// issuer more than a bounded number of times, or hold anything for who is not let in.
package signin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"github.com/starling-fl/starling/coordinator/store"
)

var (
	// ErrRefused reports a token or a login that is not accepted.
	ErrRefused = errors.New("signin: refused")
	// ErrState is the end of a login that the browser did not begin.
	ErrState = fmt.Errorf("%w: this browser did not begin this login, or began another since: sign in again", ErrRefused)
	// ErrAway is an issuer that cannot be asked now.
	ErrAway = errors.New("signin: the OpenID issuer cannot be reached now; operators' own tokens work")
)

// Limits of what an issuer is asked and says.
const (
	mostAnswer  = 1 << 20 // bytes of one answer
	askTimeout  = 10 * time.Second
	firstWait   = time.Second // before it is tried again, doubled until
	longestWait = time.Minute
	refresh     = time.Hour        // after that its configuration and keys are read anew
	keysApart   = 10 * time.Second // between two fetches of its keys, over all
	keysBurst   = 3
	loginsApart = time.Second / 10 // between two exchanges of codes, over all
	loginsBurst = 50
	placeApart  = 5 * time.Second // the same from one address (of one /64 in IPv6)
	placeBurst  = 10
	mostPlaces  = 4096 // whose pace is remembered
)

// algorithms are those that ID tokens may be signed by. All have a public key: what is public must
// not sign, as with HS256, and something must.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// Config says whom an Issuer lets in.
type Config struct {
	Issuer   string // its URL, as in the claim iss
	ClientID string
	Secret   string                  // of the client; "" for a public one
	Claim    string                  // whose values are names of groups
	Groups   map[store.Role][]string // names that have a role
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
}

// An Issuer is an OpenID provider that signs operators in.
type Issuer struct {
	cfg    Config
	host   string // of its URL, for people
	key    []byte // makes a login's secrets from its cookie
	client *http.Client
	keys   *rate.Limiter
	logins *rate.Limiter

	mu       sync.Mutex
	found    *found                         // guarded by mu; nil before the issuer was reached
	home     *url.URL                       // guarded by mu: where browsers have the dashboard
	sessions map[[32]byte]store.Operator    // guarded by mu, by the hash of their token
	places   map[netip.Prefix]*rate.Limiter // guarded by mu: logins by where they come from
	spent    map[[32]byte]time.Time         // guarded by mu: cookies of logins that are over, by their hash, and when they began
}

// found is what an issuer says of itself.
type found struct {
	verifier *oidc.IDTokenVerifier
	oauth    oauth2.Config
}

// New returns an Issuer that has not been asked for anything yet: see Run.
func New(cfg Config) (*Issuer, error) {
	u, err := url.Parse(cfg.Issuer)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("signin: the issuer is %.200q, want an address as https://id.example.org", cfg.Issuer)
	case !private(u):
		return nil, fmt.Errorf("signin: the issuer %s is another machine, and http is not encrypted: use https", u.Host)
	case cfg.ClientID == "":
		return nil, errors.New("signin: a client ID is needed, as the issuer knows this coordinator")
	case cfg.Claim == "":
		return nil, errors.New("signin: the name of a claim is needed")
	}
	named := 0
	for _, of := range cfg.Groups {
		named += len(of)
		if slices.Contains(of, "") {
			return nil, errors.New("signin: a group has no name")
		}
	}
	if named == 0 {
		return nil, errors.New("signin: no group has a role, so nobody could sign in")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	i := &Issuer{cfg: cfg, host: u.Host, key: make([]byte, 32), sessions: map[[32]byte]store.Operator{}, places: map[netip.Prefix]*rate.Limiter{}, spent: map[[32]byte]time.Time{},
		keys: rate.NewLimiter(rate.Every(keysApart), keysBurst), logins: rate.NewLimiter(rate.Every(loginsApart), loginsBurst)}
	rand.Read(i.key) // ends the program where the system has no randomness
	i.client = &http.Client{Timeout: askTimeout, Transport: bounded{http.DefaultTransport, nil}, CheckRedirect: stay}
	return i, nil
}

// private reports whether nobody on the way reads what is said to an address.
func private(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// stay follows no redirect to where others could read or answer, and none with a code or a secret.
func stay(r *http.Request, via []*http.Request) error {
	if len(via) > 3 || !private(r.URL) || via[0].Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	return nil
}

// errPace is a fetch that there is no time for.
var errPace = errors.New("it was asked a moment ago")

// keySet tells a key that the issuer does not have from keys that cannot be had.
type keySet struct{ oidc.KeySet }

// awayKey is where a context has an *error, for why keys could not be had.
type awayKey struct{}

func (k keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, jwt)
	if err == nil {
		return payload, nil
	}
	if errors.Is(err, errPace) {
		return nil, errors.New("signin: the issuer had no such key a moment ago")
	}
	if away, ok := ctx.Value(awayKey{}).(*error); ok && strings.HasPrefix(err.Error(), "fetching keys") {
		*away = err
	}
	return nil, fmt.Errorf("signin: %w", err)
}

// bounded cuts answers off, and refuses to ask more often than its limiter allows, if it has one.
type bounded struct {
	next http.RoundTripper
	pace *rate.Limiter
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.pace != nil && !b.pace.Allow() {
		return nil, errPace
	}
	res, err := b.next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, mostAnswer), res.Body}
	}
	return res, err
}

// Name is the issuer's, for people: its host.
func (i *Issuer) Name() string { return i.host }

// At sets where browsers have the dashboard: the issuer sends them back below it.
func (i *Issuer) At(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !private(u) || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("signin: the dashboard's address is %.200q, want one as https://host:port, or http on this machine", address)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.home = u
	return nil
}

// Home is where browsers have the dashboard.
func (i *Issuer) Home() *url.URL {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.home
}

// Run reads the issuer's configuration, again and again until it is reached, and anew every hour;
// until ctx is done. said is told when it could not be reached, with why, and when it was, with nil.
func (i *Issuer) Run(ctx context.Context, said func(error)) {
	wait, was := firstWait, error(nil)
	for first := true; ; first = false {
		err := i.discover(ctx)
		if ctx.Err() != nil {
			return
		}
		if first || (err == nil) != (was == nil) {
			said(err)
		}
		after := wait
		if was = err; err == nil {
			wait, after = firstWait, refresh
		} else {
			wait = min(2*wait, longestWait)
		}
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return
		}
	}
}

// discover reads the issuer's configuration (OpenID Connect Discovery 1.0).
func (i *Issuer) discover(ctx context.Context) error {
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.cfg.Issuer)
	if err != nil {
		return fmt.Errorf("signin: %w", err)
	}
	var says struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
		Scopes  []string `json:"scopes_supported"`
	}
	if err := p.Claims(&says); err != nil {
		return fmt.Errorf("signin: the issuer's configuration: %w", err)
	}
	endpoint := p.Endpoint()
	for _, address := range []string{says.Keys, endpoint.AuthURL, endpoint.TokenURL} {
		if u, err := url.Parse(address); err != nil || u.Host == "" || !private(u) {
			return fmt.Errorf("signin: the issuer's configuration names %.200q, want an address with https", address)
		}
	}
	endpoint.AuthStyle = oauth2.AuthStyleInParams // of a client without a secret, too
	if i.cfg.Secret != "" && (len(says.Methods) == 0 || slices.Contains(says.Methods, "client_secret_basic")) {
		endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	scopes := []string{oidc.ScopeOpenID, "email"}
	if slices.Contains(says.Scopes, i.cfg.Claim) { // as of Dex and Okta: without it the claim is not there
		scopes = append(scopes, i.cfg.Claim)
	}
	// The set outlives ctx, and fetches by a client of its own.
	slow := &http.Client{Timeout: askTimeout, Transport: bounded{http.DefaultTransport, i.keys}, CheckRedirect: stay}
	set := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), slow), says.Keys)
	verifier := oidc.NewVerifier(i.cfg.Issuer, keySet{set}, &oidc.Config{ClientID: i.cfg.ClientID, SupportedSigningAlgs: algorithms, Now: i.cfg.Now})
	i.mu.Lock()
	defer i.mu.Unlock()
	i.found = &found{verifier, oauth2.Config{ClientID: i.cfg.ClientID, ClientSecret: i.cfg.Secret, Endpoint: endpoint, Scopes: scopes}}
	return nil
}

// reached is what the issuer said of itself; ErrAway before.
func (i *Issuer) reached() (*found, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.found == nil {
		return nil, ErrAway
	}
	return i.found, nil
}

// MarshalJSON writes the issuer's state for the dashboard.
func (i *Issuer) MarshalJSON() ([]byte, error) {
	_, err := i.reached()
	return json.Marshal(struct {
		Issuer string `json:"issuer"`
		Ready  bool   `json:"ready"`
	}{i.host, err == nil})
}
