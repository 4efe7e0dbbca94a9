package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// A join token starts with what it is and in which form. The first form has
// neither Task nor Authority: anyone who answers at its address says what the job is.
const (
	tokenPrefix    = "starling2_"
	oldTokenPrefix = "starling1_"
)

// MaxSecret is the longest enrolment secret, bytes.
const MaxSecret = 64

// notPlain reports whether two programs could read a character of a path differently.
func notPlain(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~/", r))
}

// ErrToken is a join token that cannot be read.
var ErrToken = errors.New("wire: not a join token")

// A Token is all that a device needs to join: where the coordinator is, which
// certificate it shows, the enrolment secret, and which job it is to join there.
// It is a secret itself.
type Token struct {
	_         struct{} `cbor:",toarray"`
	URL       string   // http://host:port or https://host:port; with a path where a proxy serves it below one
	Pin       []byte   // SHA-256 of the certificate (DER) that TLS must show; empty: the system's roots, or no TLS
	Secret    []byte
	Task      []byte // TaskID of the job: another is refused; empty: any
	Authority []byte // Ed25519 key that certifies the job's rosters; empty: any
}

// oldToken is the first form.
type oldToken struct {
	_      struct{} `cbor:",toarray"`
	URL    string
	Pin    []byte
	Secret []byte
}

// String writes the token as one word.
func (t Token) String() string {
	b, err := code.Append(nil, &t)
	if err != nil {
		return ""
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// ParseToken reads a token and checks its parts.
func ParseToken(s string) (Token, error) {
	var t Token
	if len(s) > 2048 {
		return t, fmt.Errorf("%w: longer than 2048 bytes", ErrToken)
	}
	s = strings.TrimSpace(s)
	rest, ok := strings.CutPrefix(s, tokenPrefix)
	old := false
	if !ok {
		rest, old = strings.CutPrefix(s, oldTokenPrefix)
	}
	if !ok && !old {
		return t, fmt.Errorf("%w: does not start with %q", ErrToken, tokenPrefix)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil {
		what := "it is cut, or its end is damaged"
		if at := new(base64.CorruptInputError); errors.As(err, at) && int(*at) < len(rest)-4 {
			what = fmt.Sprintf("its character %d is none of these", len(s)-len(rest)+int(*at)+1)
		}
		return t, fmt.Errorf("%w: want %s and letters, digits, - and _ after it, all on one line as 'starling serve' prints it; %s", ErrToken, tokenPrefix, what)
	}
	if old {
		var first oldToken
		err = decodeBody(b, &first)
		t.URL, t.Pin, t.Secret = first.URL, first.Pin, first.Secret
	} else {
		err = decodeBody(b, &t)
	}
	if err != nil {
		return t, fmt.Errorf("%w: it is damaged or cut; copy it whole, as 'starling serve' prints it: %w", ErrToken, err)
	}
	return t, t.Validate()
}

// Validate checks a token's parts.
func (t Token) Validate() error {
	u, err := url.Parse(t.URL)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrToken, err)
	}
	below := strings.TrimSuffix(u.Path, "/")
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, strings.ContainsAny(t.URL, "?#"):
		return fmt.Errorf("%w: address %q is not http://host:port or https://host:port, with or without a path", ErrToken, t.URL)
	case below != "" && path.Clean(below) != below, strings.ContainsFunc(u.EscapedPath(), notPlain):
		return fmt.Errorf("%w: the path of address %q is not plain: letters, digits, -._~ and single slashes alone", ErrToken, t.URL)
	case len(t.Pin) != 0 && len(t.Pin) != 32:
		return fmt.Errorf("%w: pin has %d bytes, 32 expected", ErrToken, len(t.Pin))
	case len(t.Pin) != 0 && u.Scheme != "https":
		return fmt.Errorf("%w: a pin needs https", ErrToken)
	case len(t.Task) != 0 && len(t.Task) != 32, len(t.Authority) != 0 && len(t.Authority) != 32:
		return fmt.Errorf("%w: task of %d and authority of %d bytes, 32 or none expected", ErrToken, len(t.Task), len(t.Authority))
	case len(t.Secret) > MaxSecret:
		return fmt.Errorf("%w: secret has %d bytes, limit %d", ErrToken, len(t.Secret), MaxSecret)
	}
	return nil
}

// Endpoint is the WebSocket address, BlobURL the address of a blob.
func (t Token) Endpoint() string {
	return "ws" + strings.TrimPrefix(strings.TrimRight(t.URL, "/"), "http") + Path
}

// BlobURL is where the blob with the given hash is served.
func (t Token) BlobURL(sha256 [32]byte) string {
	return strings.TrimRight(t.URL, "/") + BlobPath + fmt.Sprintf("%x", sha256)
}
