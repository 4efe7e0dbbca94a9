package signin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
)

const (
	mostToken  = 12 << 10       // bytes of an ID token; a request's headers have 16 KiB
	skew       = time.Minute    // that the issuer's clock may be ahead
	mostLife   = 12 * time.Hour // of a session, whatever its token says
	mostName   = 64             // characters of a person's name that are shown and noted
	mostReason = 300            // characters of why somebody is refused
)

// IsToken reports whether an Issuer should judge a bearer token: it is one of its sessions, or has the form of an
// ID token.
func IsToken(given string) bool {
	return isSession(given) || strings.Count(given, ".") == 2
}

// Operator returns the operator of a bearer token, which is a session's or an ID token. Its role is
// "" if no group of theirs has one. The error is ErrRefused, or ErrAway if the issuer cannot be
// asked.
func (i *Issuer) Operator(ctx context.Context, given string) (store.Operator, error) {
	if isSession(given) {
		return i.session(given)
	}
	f, err := i.reached()
	if err != nil {
		return store.Operator{}, err
	}
	return i.verified(ctx, f, given, nil)
}

// verified is the operator that an ID token is about; nonce is that of the login that it is for, if
// it is for one.
func (i *Issuer) verified(ctx context.Context, f *found, raw string, nonce *string) (o store.Operator, err error) {
	if len(raw) > mostToken {
		return o, fmt.Errorf("%w: the ID token has %d bytes, limit %d", ErrRefused, len(raw), mostToken)
	}
	if strings.ContainsRune(raw, '{') { // the library reads JWS in JSON, too; an ID token is compact
		return o, fmt.Errorf("%w: this is not an ID token", ErrRefused)
	}
	var away error
	t, err := f.verifier.Verify(context.WithValue(ctx, awayKey{}, &away), raw)
	if away != nil {
		i.cfg.Log.Warn("the issuer's keys cannot be had", "error", away)
		return o, ErrAway
	}
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	// What the library does not ask: section 3.1.3.7 of OpenID Connect Core.
	now := i.cfg.Now()
	var claims map[string]json.RawMessage
	if err := t.Claims(&claims); err != nil {
		return o, fmt.Errorf("%w: claims: %w", ErrRefused, err)
	}
	azp := text(claims["azp"])
	switch {
	case t.IssuedAt.After(now.Add(skew)):
		return o, fmt.Errorf("%w: the ID token is of %s, which is yet to come", ErrRefused, t.IssuedAt.UTC().Format(time.RFC3339))
	case t.Subject == "":
		return o, fmt.Errorf("%w: the ID token has no subject", ErrRefused)
	case azp != i.cfg.ClientID && (azp != "" || len(t.Audience) > 1):
		return o, fmt.Errorf("%w: the ID token was given to another client, %.70q", ErrRefused, azp)
	case nonce != nil && t.Nonce != *nonce:
		return o, fmt.Errorf("%w: the ID token is of another login", ErrRefused)
	}
	o = store.Operator{Name: person(claims, t.Subject) + " (" + i.host + ")", Role: i.role(claims), Made: t.IssuedAt.UTC(), Expires: t.Expiry.UTC()}
	if most := now.Add(mostLife).UTC(); o.Expires.After(most) {
		o.Expires = most
	}
	return o, nil
}

// role is the highest that a group of the claim has; "" if none has one.
func (i *Issuer) role(claims map[string]json.RawMessage) (role store.Role) {
	groups := groups(claims[i.cfg.Claim])
	for _, r := range store.Roles {
		if slices.ContainsFunc(i.cfg.Groups[r], func(name string) bool { return slices.Contains(groups, name) }) {
			role = r
		}
	}
	return role
}

// groups are the names in a claim: a text is one, a list of texts as many, and anything else none.
func groups(claim json.RawMessage) []string {
	var many []any
	if json.Unmarshal(claim, &many) != nil {
		if one := text(claim); one != "" {
			return []string{one}
		}
		return nil
	}
	var names []string
	for _, one := range many {
		name, ok := one.(string)
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// text is a claim that is a text; "" if it is none.
func text(claim json.RawMessage) (s string) {
	if json.Unmarshal(claim, &s) != nil {
		return ""
	}
	return s
}

// person is how somebody is named: by the address that the issuer has verified, else as it numbers
// people. An address that anybody may have typed in would be somebody else's name in the log.
func person(claims map[string]json.RawMessage, subject string) string {
	var verified bool
	if err := json.Unmarshal(claims["email_verified"], &verified); err != nil {
		verified = text(claims["email_verified"]) == "true" // as some write it
	}
	if email := text(claims["email"]); verified && email != "" && !strings.HasPrefix(email, "sub:") {
		return visible(email)
	}
	return visible("sub:" + subject)
}

// visible is a text as a name that is shown and noted. Brackets are how the issuer is set apart from it.
func visible(s string) string {
	return bounds(strings.NewReplacer("(", "[", ")", "]").Replace(s), mostName)
}

// bounds writes out what cannot be seen in a text, and cuts it to so many characters that two that
// differ stay different.
func bounds(s string, most int) string {
	quoted := strconv.QuoteToGraphic(s)
	out := []rune(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`))
	if len(out) <= most {
		return string(out)
	}
	hash := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%s…%x", string(out[:most-1-8]), hash[:4])
}

// Reason explains a refusal to the person. It quotes their input, bounded.
func Reason(err error) string { return bounds(strings.TrimPrefix(err.Error(), "signin: "), mostReason) }

// said is a text of the issuer's answer, bounded.
func said(q url.Values, name string) string { return visible(q.Get(name)) }
