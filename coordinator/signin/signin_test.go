package signin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/starling-fl/starling/coordinator/store"
)

// provider is an OpenID provider that signs what a test wants signed.
type provider struct {
	*httptest.Server
	key     *rsa.PrivateKey
	kid     atomic.Value // string: under which the key is published
	fetched atomic.Int64 // how often
	asked   atomic.Int64 // how many codes were brought
	claims  map[string]any
	codes   map[string]url.Values // the logins that have begun
	says    map[string]any        // beside its endpoints
}

func newProvider(t testing.TB) *provider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	ok(t, err)
	p := &provider{key: key, codes: map[string]url.Values{}, says: map[string]any{}}
	p.kid.Store("one")
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		out := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}}
		maps.Copy(out, p.says)
		json.NewEncoder(w).Encode(out)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		p.fetched.Add(1)
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: p.kid.Load().(string), Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		began, known := p.codes[r.FormValue("code")]
		delete(p.codes, r.FormValue("code")) // once
		hash := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		w.Header().Set("Content-Type", "application/json")
		if !known || base64.RawURLEncoding.EncodeToString(hash[:]) != began.Get("code_challenge") || r.FormValue("redirect_uri") != began.Get("redirect_uri") ||
			r.FormValue("client_id") != "starling" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error": "invalid_grant"}`)
			return
		}
		claims := p.person(map[string]any{"nonce": began.Get("nonce")})
		json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.signed(t, claims)})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// person is an ID token's claims, with others in place of some.
func (p *provider) person(other map[string]any) map[string]any {
	out := map[string]any{"iss": p.URL, "aud": "starling", "sub": "4711", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"email": "ada@example.org", "email_verified": true, "groups": []string{"staff", "federation-operators"}}
	maps.Copy(out, p.claims)
	maps.Copy(out, other)
	return out
}

func (p *provider) signed(t testing.TB, claims map[string]any) string {
	return signedBy(t, jose.RS256, jose.JSONWebKey{Key: p.key, KeyID: p.kid.Load().(string)}, claims)
}

func signedBy(t testing.TB, alg jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	return signedWith(t, alg, key, jose.SignerOptions{}, claims)
}

func signedWith(t testing.TB, alg jose.SignatureAlgorithm, key any, o jose.SignerOptions, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, &o)
	ok(t, err)
	b, err := json.Marshal(claims)
	ok(t, err)
	jws, err := signer.Sign(b)
	ok(t, err)
	raw, err := jws.CompactSerialize()
	ok(t, err)
	return raw
}

var anywhere = netip.MustParsePrefix("192.0.2.1/32")

// begin takes a browser to where one signs in, and returns the code that it comes back with.
func (p *provider) begin(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	ok(t, err)
	q := u.Query()
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("client_id") != "starling" {
		t.Fatalf("it is asked for %v", q)
	}
	code := rand.Text()
	p.codes[code] = q
	return url.Values{"code": {code}, "state": {q.Get("state")}}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *provider) issuer(t testing.TB) *Issuer {
	t.Helper()
	i, err := New(Config{Issuer: p.URL, ClientID: "starling", Claim: "groups", Groups: map[store.Role][]string{
		store.RoleViewer: {"staff"}, store.RoleOperator: {"federation-operators"}, store.RoleAdmin: {"federation-admins"}}})
	ok(t, err)
	ok(t, i.At("http://127.0.0.1:9090/fl"))
	ok(t, i.discover(t.Context()))
	return i
}

// TestIDTokens: who shows one is an operator, with the highest role of their groups, under a name that
// nobody chooses.
func TestIDTokens(t *testing.T) {
	p := newProvider(t)
	i := p.issuer(t)
	for name, of := range map[string]struct {
		other map[string]any
		who   string
		role  store.Role
	}{
		"two groups":                          {nil, "ada@example.org", store.RoleOperator},
		"one, as a text":                      {map[string]any{"groups": "federation-admins"}, "ada@example.org", store.RoleAdmin},
		"none that counts":                    {map[string]any{"groups": []string{"others", "Staff", ""}}, "ada@example.org", ""},
		"no claim":                            {map[string]any{"groups": nil}, "ada@example.org", ""},
		"a number":                            {map[string]any{"groups": 1}, "ada@example.org", ""},
		"an object":                           {map[string]any{"groups": map[string]any{"federation-admins": true}}, "ada@example.org", ""},
		"a list within a list":                {map[string]any{"groups": []any{[]string{"federation-admins"}}}, "ada@example.org", ""},
		"names and others":                    {map[string]any{"groups": []any{"staff", 1}}, "ada@example.org", ""},
		"several in one text":                 {map[string]any{"groups": "staff federation-admins"}, "ada@example.org", ""},
		"an address nobody looked at":         {map[string]any{"email_verified": false}, "sub:4711", store.RoleOperator},
		"verified as a text":                  {map[string]any{"email_verified": "true"}, "ada@example.org", store.RoleOperator},
		"an address that is a number":         {map[string]any{"email": 7}, "sub:4711", store.RoleOperator},
		"two audiences, given to us":          {map[string]any{"aud": []string{"starling", "b"}, "azp": "starling"}, "ada@example.org", store.RoleOperator},
		"a name of the folder's":              {map[string]any{"email": "(the folder)"}, "[the folder]", store.RoleOperator},
		"what cannot be seen":                 {map[string]any{"email": "ada\u202e\n@x"}, `ada\u202e\n@x`, store.RoleOperator},
		"a long one":                          {map[string]any{"email": strings.Repeat("a", 300)}, strings.Repeat("a", 55) + "…98834b47", store.RoleOperator},
		"a clock that is half a minute ahead": {map[string]any{"iat": time.Now().Add(skew / 2).Unix()}, "ada@example.org", store.RoleOperator},
	} {
		o, err := i.Operator(t.Context(), p.signed(t, p.person(of.other)))
		if want := of.who + " (" + i.host + ")"; err != nil || o.Role != of.role || o.Name != want && name != "a long one" || len([]rune(o.Name)) > mostName+len(i.host)+3 {
			t.Errorf("%s: %q is %q, want %q %q: %v", name, o.Name, o.Role, want, of.role, err)
		}
	}
	if a, b := visible(strings.Repeat("a", 300)), visible(strings.Repeat("a", 301)); a == b {
		t.Errorf("two people are %q", a)
	}
	long, err := i.Operator(t.Context(), p.signed(t, p.person(map[string]any{"exp": time.Now().Add(10000 * time.Hour).Unix()})))
	if err != nil || time.Until(long.Expires) > mostLife {
		t.Errorf("a token is good until %v: %v", long.Expires, err)
	}
}

// TestIDTokensRefused: whose issuer, client, time, key or algorithm is another lets nobody in.
func TestIDTokensRefused(t *testing.T) {
	p := newProvider(t)
	i := p.issuer(t)
	der, err := x509.MarshalPKIXPublicKey(p.key.Public())
	ok(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	none := func(claims map[string]any) string {
		b, err := json.Marshal(claims)
		ok(t, err)
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(b) + "."
	}
	good := p.signed(t, p.person(nil))
	parts := strings.Split(good, ".")
	b, err := json.Marshal(p.person(map[string]any{"groups": "federation-admins"}))
	ok(t, err)
	for name, raw := range map[string]string{
		"another audience":            p.signed(t, p.person(map[string]any{"aud": "other"})),
		"no audience":                 p.signed(t, p.person(map[string]any{"aud": nil})),
		"given to another client":     p.signed(t, p.person(map[string]any{"azp": "other"})),
		"two audiences, given to who": p.signed(t, p.person(map[string]any{"aud": []string{"starling", "other"}})),
		"another issuer":              p.signed(t, p.person(map[string]any{"iss": "https://id.example.org"})),
		"the issuer with a slash":     p.signed(t, p.person(map[string]any{"iss": p.URL + "/"})),
		"expired":                     p.signed(t, p.person(map[string]any{"exp": time.Now().Add(-time.Second).Unix()})),
		"without an end":              p.signed(t, p.person(map[string]any{"exp": nil})),
		"of tomorrow":                 p.signed(t, p.person(map[string]any{"iat": time.Now().Add(24 * time.Hour).Unix()})),
		"not good yet":                p.signed(t, p.person(map[string]any{"nbf": time.Now().Add(24 * time.Hour).Unix()})),
		"has no subject":              p.signed(t, p.person(map[string]any{"sub": ""})),
		"unsigned":                    none(p.person(nil)),
		"the public key as a secret":  signedBy(t, jose.HS256, jose.JSONWebKey{Key: public, KeyID: "one"}, p.person(nil)),
		"its modulus as a secret":     signedBy(t, jose.HS256, jose.JSONWebKey{Key: p.key.N.Bytes(), KeyID: "one"}, p.person(nil)),
		"another key of that name":    signedBy(t, jose.ES256, jose.JSONWebKey{Key: other, KeyID: "one"}, p.person(nil)),
		"a key of its own":            signedWith(t, jose.ES256, other, jose.SignerOptions{EmbedJWK: true}, p.person(nil)),
		"other claims":                parts[0] + "." + base64.RawURLEncoding.EncodeToString(b) + "." + parts[2],
		"cut off":                     good[:len(good)-1],
		"long":                        p.signed(t, p.person(map[string]any{"x": strings.Repeat("a", mostToken)})),
		"empty parts":                 "..",
		"JSON in place of it":         `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `","x":".."}`,
	} {
		if o, err := i.Operator(t.Context(), raw); !errors.Is(err, ErrRefused) || o.Role != "" {
			t.Errorf("%s: %+v, %v", name, o, err)
		} else if r := Reason(err); len([]rune(r)) > mostReason {
			t.Errorf("%s: a reason of %d characters", name, len(r))
		}
	}
	if _, err := i.Operator(t.Context(), good); err != nil {
		t.Error(err)
	}
}

// TestLogin: a browser that comes back with what it began with is let in, for as long as its token, and
// until it signs out.
func TestLogin(t *testing.T) {
	p := newProvider(t)
	i := p.issuer(t)
	address, cookie, err := i.Begin("invoices")
	ok(t, err)
	q := p.begin(t, address)
	if got := p.codes[q.Get("code")].Get("redirect_uri"); got != "http://127.0.0.1:9090/fl/v1/oidc/callback" {
		t.Errorf("browsers are sent back to %s", got)
	}
	o, token, job, err := i.Finish(t.Context(), anywhere, cookie, q)
	if err != nil || job != "invoices" || o.Role != store.RoleOperator || !IsToken(token) {
		t.Fatalf("%+v, %q, %q, %v", o, token, job, err)
	}
	if again, err := i.Operator(t.Context(), token); err != nil || again != o {
		t.Errorf("%+v, %v", again, err)
	}
	if _, _, _, err := i.Finish(t.Context(), anywhere, cookie, q); !errors.Is(err, ErrRefused) {
		t.Errorf("a code twice: %v", err)
	}
	i.cfg.Now = func() time.Time { return o.Expires }
	if _, err := i.Operator(t.Context(), token); !errors.Is(err, ErrRefused) {
		t.Errorf("after its end: %v", err)
	}
	i.cfg.Now = time.Now
	i.SignOut(token)
	if _, err := i.Operator(t.Context(), token); !errors.Is(err, ErrRefused) {
		t.Errorf("signed out: %v", err)
	}
	p.claims = map[string]any{"groups": "others"}
	address, cookie, err = i.Begin("")
	ok(t, err)
	if o, token, _, err := i.Finish(t.Context(), anywhere, cookie, p.begin(t, address)); err != nil || token != "" || o.Role != "" {
		t.Errorf("without a role: %+v, %q, %v", o, token, err)
	}
}

// TestLoginsRefused: nobody ends a login that another browser began, is made to, or has what the
// issuer gave for another.
func TestLoginsRefused(t *testing.T) {
	p := newProvider(t)
	i := p.issuer(t)
	address, cookie, err := i.Begin("")
	ok(t, err)
	q := p.begin(t, address)
	hers, herCookie, err := i.Begin("")
	ok(t, err)
	hersBack := p.begin(t, hers)
	with := func(q url.Values, k, v string) url.Values {
		out := maps.Clone(q)
		out.Set(k, v)
		return out
	}
	began, _, _ := strings.Cut(cookie, ".")
	for name, of := range map[string]struct {
		cookie string
		q      url.Values
		want   error
	}{
		"without a cookie":          {"", q, ErrState},
		"in another browser":        {herCookie, q, ErrState},
		"another's code":            {cookie, with(q, "code", hersBack.Get("code")), ErrRefused},
		"a code that nobody gave":   {cookie, with(q, "code", "made up"), ErrRefused},
		"no code":                   {cookie, url.Values{"state": q["state"]}, ErrRefused},
		"no state":                  {cookie, url.Values{"code": q["code"]}, ErrState},
		"a cookie for another page": {began + ".https://evil.example", q, ErrState},
		"a cookie that is made up":  {base64.RawURLEncoding.EncodeToString(make([]byte, 32)) + ".", q, ErrState},
		"a long cookie":             {cookie + strings.Repeat("a", 5000), q, ErrState},
		"of another issuer":         {cookie, with(q, "iss", "https://id.example.org"), ErrRefused},
		"an error in place of it":   {cookie, with(q, "error", "access_denied"), ErrRefused},
	} {
		if o, token, _, err := i.Finish(t.Context(), anywhere, of.cookie, of.q); !errors.Is(err, of.want) || token != "" {
			t.Errorf("%s: %+v %q %v, want %v", name, o, token, err, of.want)
		}
	}
	// A token of another login, as who injects one would have it.
	address, cookie, err = i.Begin("")
	ok(t, err)
	q = p.begin(t, address)
	p.codes[q.Get("code")].Set("nonce", "another")
	if _, _, _, err := i.Finish(t.Context(), anywhere, cookie, q); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "another login") {
		t.Errorf("another nonce: %v", err)
	}
	address, cookie, err = i.Begin("")
	ok(t, err)
	q = p.begin(t, address)
	i.cfg.Now = func() time.Time { return time.Now().Add(LoginLife + time.Minute) }
	if _, _, _, err := i.Finish(t.Context(), anywhere, cookie, q); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "took longer") {
		t.Errorf("late: %v", err)
	}
}

// TestKeysRotate: a key that is new is fetched; who makes names of keys up has the issuer asked a
// bounded number of times, and so does who makes codes up.
func TestKeysRotate(t *testing.T) {
	p, began := newProvider(t), time.Now()
	i := p.issuer(t)
	_, err := i.Operator(t.Context(), p.signed(t, p.person(nil)))
	ok(t, err)
	p.kid.Store("two")
	_, err = i.Operator(t.Context(), p.signed(t, p.person(nil)))
	ok(t, err)
	for n := range 50 {
		raw := signedBy(t, jose.RS256, jose.JSONWebKey{Key: p.key, KeyID: fmt.Sprint("made up ", n)}, p.person(nil))
		if _, err := i.Operator(t.Context(), raw); !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		}
	}
	if n := p.fetched.Load(); n > keysBurst+1+int64(time.Since(began)/keysApart) {
		t.Errorf("the keys were fetched %d times", n)
	}
	if _, err := i.Operator(t.Context(), p.signed(t, p.person(nil))); err != nil {
		t.Errorf("known keys go on: %v", err)
	}
	// A stranger brings made-up codes, with as many logins as he likes; others sign in meanwhile.
	for n := range 100 {
		address, cookie, err := i.Begin("")
		ok(t, err)
		q := p.begin(t, address)
		q.Set("code", "made up")
		for range 2 { // a cookie is good for one
			if _, _, _, err := i.Finish(t.Context(), anywhere, cookie, q); !errors.Is(err, ErrRefused) {
				t.Fatal(n, err)
			}
		}
	}
	if n := p.asked.Load(); n > placeBurst+1+int64(time.Since(began)/placeApart) {
		t.Errorf("codes were brought %d times", n)
	}
	address, cookie, err := i.Begin("")
	ok(t, err)
	if _, _, _, err := i.Finish(t.Context(), netip.MustParsePrefix("198.51.100.1/32"), cookie, p.begin(t, address)); err != nil {
		t.Errorf("somebody else is kept out: %v", err)
	}
	if len(i.spent) > placeBurst+2+int(time.Since(began)/placeApart) {
		t.Errorf("%d cookies are remembered", len(i.spent))
	}
}

// TestKeysAway: where keys cannot be had nobody is refused for it, and nobody is told of the network.
func TestKeysAway(t *testing.T) {
	p := newProvider(t)
	i := p.issuer(t)
	raw := p.signed(t, p.person(nil))
	p.Close()
	if _, err := i.Operator(t.Context(), raw); !errors.Is(err, ErrAway) || strings.Contains(Reason(err), "127.0.0.1") {
		t.Errorf("%v", err)
	}
}

// TestDashboardsAddress: nobody is sent back to where others read the session.
func TestDashboardsAddress(t *testing.T) {
	i := newProvider(t).issuer(t)
	for address, good := range map[string]bool{"https://fl.example.org/x": true, "http://localhost:1": true, "http://fl.example.org": false, "fl.example.org": false, "https://a@fl.example.org": false} {
		if err := i.At(address); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestAway: an issuer that is not there yet keeps nobody from starting, and is found when it is; one
// that says another's name, or where everybody reads along, is not taken.
func TestAway(t *testing.T) {
	p := newProvider(t)
	i, err := New(Config{Issuer: p.URL, ClientID: "starling", Claim: "groups", Groups: map[store.Role][]string{store.RoleViewer: {"staff"}}})
	ok(t, err)
	raw := p.signed(t, p.person(nil))
	if _, err := i.Operator(t.Context(), raw); !errors.Is(err, ErrAway) {
		t.Errorf("before: %v", err)
	}
	if _, _, err := i.Begin(""); !errors.Is(err, ErrAway) {
		t.Errorf("before: %v", err)
	}
	for name, says := range map[string]map[string]any{"another's name": {"issuer": "https://id.example.org"}, "keys in the clear": {"jwks_uri": "http://192.0.2.1/keys"}, "no keys": {"jwks_uri": ""},
		"an answer without end": {"x": strings.Repeat("a", mostAnswer)}} {
		p.says = says
		if err := i.discover(t.Context()); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	told := make(chan error, 10)
	done := make(chan struct{})
	go func() { i.Run(ctx, func(err error) { p.says = nil; told <- err }); close(done) }()
	if first, second := <-told, <-told; first == nil || second != nil {
		t.Errorf("%v, %v", first, second)
	}
	stop()
	<-done
	if o, err := i.Operator(t.Context(), raw); err != nil || o.Role != store.RoleViewer {
		t.Errorf("after: %+v, %v", o, err)
	}
}

// TestSessionsAreBounded: nobody who signs in often has others signed out.
func TestSessionsAreBounded(t *testing.T) {
	i := newProvider(t).issuer(t)
	now := time.Now()
	first := i.open(store.Operator{Name: "admin", Expires: now.Add(time.Minute)})
	var viewers []string
	for n := range mostOfOne + 1 {
		viewers = append(viewers, i.open(store.Operator{Name: "viewer", Expires: now.Add(time.Hour + time.Duration(n))}))
	}
	if _, err := i.session(viewers[0]); err == nil || len(i.sessions) != mostOfOne+1 {
		t.Errorf("%d sessions, %v", len(i.sessions), err)
	}
	for n := len(i.sessions); n < mostSessions; n++ { // as many people sign in
		i.sessions[[32]byte{1, byte(n), byte(n >> 8)}] = store.Operator{Name: fmt.Sprint(n), Expires: now.Add(time.Hour)}
	}
	last := i.open(store.Operator{Name: "one more", Expires: now.Add(time.Hour)})
	for _, token := range []string{first, last, viewers[mostOfOne]} {
		if _, err := i.session(token); err != nil || len(i.sessions) != mostSessions {
			t.Errorf("%d sessions, %v", len(i.sessions), err)
		}
	}
	if _, err := i.session(viewers[1]); err == nil {
		t.Error("who has the most keeps them all")
	}
}

func TestConfig(t *testing.T) {
	good := Config{Issuer: "https://id.example.org/realms/staff", ClientID: "starling", Claim: "groups", Groups: map[store.Role][]string{store.RoleViewer: {"staff"}}}
	for want, change := range map[string]func(*Config){
		"not encrypted": func(c *Config) { c.Issuer = "http://id.example.org" },
		"an address":    func(c *Config) { c.Issuer = "id.example.org" },
		"client ID":     func(c *Config) { c.ClientID = "" },
		"of a claim":    func(c *Config) { c.Claim = "" },
		"no group has":  func(c *Config) { c.Groups = nil },
		"has no name":   func(c *Config) { c.Groups = map[store.Role][]string{store.RoleViewer: {""}} },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	_, err := New(good)
	ok(t, err)
}

// FuzzClaims: whatever an issuer signs, a role comes from a group's name alone, and a name is bounded
// and can be seen.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{`{"groups":["staff"],"email":"a@b","email_verified":true}`, `{"groups":{"staff":1}}`, `{"groups":"staff","email":"\u202e","email_verified":"true"}`, `[]`, `{"groups":[["staff"],null]}`} {
		f.Add(seed, "4711")
	}
	i := &Issuer{cfg: Config{Claim: "groups", Groups: map[store.Role][]string{store.RoleAdmin: {"staff"}}}}
	f.Fuzz(func(t *testing.T, text, subject string) {
		var claims map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &claims) != nil {
			return
		}
		if role := i.role(claims); role != "" && !strings.Contains(text, "st") && !strings.Contains(text, `\u`) {
			t.Errorf("%q has the role %s", text, role)
		}
		name := person(claims, subject)
		if len([]rune(name)) > mostName || strings.ContainsAny(name, "()\n\r\u202e\u2066") {
			t.Errorf("a name is %q", name)
		}
	})
}
