// Package statement is what an organisation says to those whose devices a job asks for: who it is, what for, and who
// receives the model. A signature binds it to the organisation's domain and to the coordinator's address, so that
// nobody else can show it for a job of their own (see wellknown).
//
//	about.Signature = about.Sign(job, key)
//	err := about.Holds(job, address, keys)
package statement

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Statement is the part of a job file that its owners read first. Empty: the job says nothing.
type Statement struct {
	// Organisation asks. At most 80 characters; required where anything else is said.
	Organisation string `yaml:"organisation" json:"organisation,omitempty"`
	// Purpose is what the model is for, one sentence of at most 200 characters.
	Purpose string `yaml:"purpose" json:"purpose,omitempty"`
	// Receives says who gets the trained model, at most 120 characters.
	Receives string `yaml:"receives" json:"receives,omitempty"`
	// Contact is where questions go, at most 120 characters.
	Contact string `yaml:"contact" json:"contact,omitempty"`
	// Terms is the https address of what else holds.
	Terms string `yaml:"terms" json:"terms,omitempty"`
	// Until is the last day of the job, as 2027-01-31. It stops nothing: owners read it.
	Until string `yaml:"until" json:"until,omitempty"`
	// Domain is the organisation's, whose /.well-known/starling.json names the key of Signature.
	Domain string `yaml:"domain" json:"domain,omitempty"`
	// Address is that of the coordinator, which the signature is for.
	Address string `yaml:"address" json:"address,omitempty"`
	// Signature is what 'starling job sign' prints.
	Signature string `yaml:"signature" json:"signature,omitempty"`
}

// ErrStatement is wrapped by what is wrong with a Statement.
var ErrStatement = errors.New("the statement of who asks is unusable")

// Path is that of the file that names a domain's keys, and MostFile its most bytes.
const (
	Path     = "/.well-known/starling.json"
	MostFile = 16 << 10
	mostKeys = 32
)

// IsZero reports whether nothing is said.
func (a Statement) IsZero() bool { return a == Statement{} }

var domain = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$`)

// Check returns what is wrong with a, by the key in the job file.
func (a Statement) Check() error {
	for _, f := range []struct {
		key, text string
		most      int
	}{
		{"organisation", a.Organisation, 80}, {"purpose", a.Purpose, 200}, {"receives", a.Receives, 120}, {"contact", a.Contact, 120},
		{"terms", a.Terms, 300}, {"until", a.Until, 10}, {"domain", a.Domain, 253}, {"address", a.Address, 300}, {"signature", a.Signature, 88},
	} {
		switch {
		case utf8.RuneCountInString(f.text) > f.most:
			return fmt.Errorf("about.%s has %d characters, the limit is %d", f.key, utf8.RuneCountInString(f.text), f.most)
		case !utf8.ValidString(f.text) || strings.ContainsFunc(f.text, func(r rune) bool { return !unicode.IsPrint(r) }):
			return fmt.Errorf("about.%s holds a character that cannot be printed: write one line of text", f.key)
		case strings.TrimSpace(f.text) != f.text:
			return fmt.Errorf("about.%s begins or ends with a space", f.key)
		}
	}
	if a.IsZero() {
		return nil
	}
	if a.Organisation == "" {
		return errors.New("about.organisation is missing: say who asks")
	}
	if a.Terms != "" && !isHTTPS(a.Terms) {
		return fmt.Errorf("about.terms is %q, must be an https address", a.Terms)
	}
	if _, err := time.Parse(time.DateOnly, a.Until); err != nil && a.Until != "" {
		return fmt.Errorf("about.until is %q, must be a day as 2027-01-31", a.Until)
	}
	if a.Domain != "" && !domain.MatchString(a.Domain) {
		return fmt.Errorf("about.domain is %q, must be a domain in lower case, as example.org", a.Domain)
	}
	if a.Address != "" && !isHTTPS(a.Address) {
		return fmt.Errorf("about.address is %q, must be the coordinator's https address", a.Address)
	}
	if a.Signature == "" {
		return nil
	}
	if a.Domain == "" || a.Address == "" {
		return errors.New("about.signature needs about.domain and about.address: starling job sign prints all three")
	}
	if sig, err := base64.StdEncoding.Strict().DecodeString(a.Signature); err != nil || len(sig) != ed25519.SignatureSize {
		return errors.New("about.signature is not what starling job sign prints: 64 bytes in base64")
	}
	return nil
}

func isHTTPS(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

// signed is what a signature is over. No field holds a line's end, so that one statement has one text.
func (a Statement) signed(job string) []byte {
	return []byte(strings.Join([]string{"starling/1 about", job, a.Organisation, a.Purpose, a.Receives, a.Contact, a.Terms, a.Until, a.Domain, strings.TrimRight(a.Address, "/")}, "\n"))
}

// Sign returns the Signature of a, of the job of that name.
func (a Statement) Sign(job string, key ed25519.PrivateKey) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(key, a.signed(job)))
}

// SignedFor returns an error unless a has a signature for that address, whoever made it.
func (a Statement) SignedFor(address string) error {
	if err := a.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrStatement, err)
	}
	if a.Signature == "" {
		return fmt.Errorf("%w: it is not signed", ErrStatement)
	}
	if strings.TrimRight(address, "/") != strings.TrimRight(a.Address, "/") {
		return fmt.Errorf("%w: it is signed for %s, this is %s", ErrStatement, a.Address, address)
	}
	return nil
}

// Holds returns an error unless one of the keys has signed a for the job of that name at that address.
func (a Statement) Holds(job, address string, keys []ed25519.PublicKey) error {
	if err := a.SignedFor(address); err != nil {
		return err
	}
	sig, err := base64.StdEncoding.Strict().DecodeString(a.Signature)
	for _, key := range keys {
		if err == nil && ed25519.Verify(key, a.signed(job), sig) {
			return nil
		}
	}
	return fmt.Errorf("%w: no key of %s has signed it", ErrStatement, a.Domain)
}

// file is /.well-known/starling.json.
type file struct {
	Keys [][]byte `json:"keys"`
}

// KeyFile is the file that names keys.
func KeyFile(keys ...ed25519.PublicKey) ([]byte, error) {
	var f file
	for _, k := range keys {
		f.Keys = append(f.Keys, k)
	}
	return json.Marshal(f)
}

// Keys reads such a file.
func Keys(b []byte) (keys []ed25519.PublicKey, err error) {
	var f file
	if len(b) > MostFile {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrStatement, Path, MostFile)
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrStatement, Path, err)
	}
	if len(f.Keys) == 0 || len(f.Keys) > mostKeys {
		return nil, fmt.Errorf("%w: %s names %d keys, want 1..%d", ErrStatement, Path, len(f.Keys), mostKeys)
	}
	for i, k := range f.Keys {
		if len(k) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("%w: %s: key %d has %d bytes, want %d", ErrStatement, Path, i+1, len(k), ed25519.PublicKeySize)
		}
		keys = append(keys, k)
	}
	return keys, nil
}
