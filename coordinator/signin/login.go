package signin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"github.com/starling-fl/starling/coordinator/store"
)

// A login is a cookie in one browser, and nothing here: its time and 24 random bytes, and the job
// whose dashboard it began at. State, nonce and PKCE's verifier are made of the cookie with a key that
// this process alone has, so that who begins logins and does not end them takes no memory, and who
// makes a cookie up knows no state for it.

// CallbackPath is where the issuer sends browsers back, below the dashboard's address.
const CallbackPath = "/v1/oidc/callback"

const (
	// LoginLife limits the time of a login at the issuer.
	LoginLife  = 10 * time.Minute
	mostCookie = 128
)

// made is one of the secrets of the login that a cookie is.
func (i *Issuer) made(what, cookie string) string {
	m := hmac.New(sha256.New, i.key)
	m.Write([]byte(what + "\x00" + cookie))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// Begin returns where a browser signs in, and the cookie that it comes back with. The job is the one
// whose dashboard it comes from, "" for that of all.
func (i *Issuer) Begin(job string) (address, cookie string, err error) {
	f, err := i.reached()
	if err != nil {
		return "", "", err
	}
	b := make([]byte, 8+24)
	rand.Read(b[8:]) // ends the program where the system has no randomness
	binary.BigEndian.PutUint64(b, uint64(i.cfg.Now().Unix()))
	cookie = base64.RawURLEncoding.EncodeToString(b) + "." + job
	oauth := i.oauth(f)
	return oauth.AuthCodeURL(i.made("state", cookie), oidc.Nonce(i.made("nonce", cookie)), oauth2.S256ChallengeOption(i.made("verifier", cookie))), cookie, nil
}

func (i *Issuer) oauth(f *found) oauth2.Config {
	o := f.oauth
	if home := i.Home(); home != nil {
		o.RedirectURL = home.JoinPath(CallbackPath).String()
	}
	return o
}

// spend lets a login be ended once, by its cookie, and bounds how many are, from one place and over all.
func (i *Issuer) spend(cookie string, began time.Time, from netip.Prefix) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	now, hash := i.cfg.Now(), sha256.Sum256([]byte(cookie))
	if _, over := i.spent[hash]; over {
		return ErrState
	}
	place := i.places[from]
	if place == nil {
		if len(i.places) >= mostPlaces {
			maps.DeleteFunc(i.places, func(_ netip.Prefix, l *rate.Limiter) bool { return l.Tokens() >= placeBurst })
		}
		if place = rate.NewLimiter(rate.Every(placeApart), placeBurst); len(i.places) < mostPlaces {
			i.places[from] = place
		}
	}
	if !place.Allow() || !i.logins.Allow() {
		return fmt.Errorf("%w: too many logins at once: try again in some seconds", ErrRefused)
	}
	// No more of them than the limiter lets through while a cookie is good.
	maps.DeleteFunc(i.spent, func(_ [32]byte, began time.Time) bool { return now.Sub(began) > LoginLife })
	i.spent[hash] = began
	return nil
}

// Finish takes what the issuer sent a browser back with, from where, and the browser's cookie. It returns who
// signed in, a token for them, and the job whose dashboard they came from. The error is ErrRefused or
// ErrAway; an operator without a role gets no token.
func (i *Issuer) Finish(ctx context.Context, from netip.Prefix, cookie string, q url.Values) (o store.Operator, token, job string, err error) {
	f, err := i.reached()
	if err != nil {
		return o, "", "", err
	}
	began, job, _ := strings.Cut(cookie, ".")
	b, err := base64.RawURLEncoding.DecodeString(began)
	if err != nil || len(b) != 8+24 || len(cookie) > mostCookie ||
		subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(i.made("state", cookie))) != 1 {
		return o, "", "", ErrState
	}
	at := time.Unix(int64(binary.BigEndian.Uint64(b)), 0)
	if age := i.cfg.Now().Sub(at); age < 0 || age > LoginLife {
		return o, "", "", fmt.Errorf("%w: the login took longer than %v: sign in again", ErrRefused, LoginLife)
	}
	switch iss := q.Get("iss"); { // RFC 9207
	case iss != "" && iss != i.cfg.Issuer:
		return o, "", "", fmt.Errorf("%w: the answer is of another issuer, %s", ErrRefused, said(q, "iss"))
	case q.Get("error") != "":
		return o, "", "", fmt.Errorf("%w: %s says %s %s", ErrRefused, i.host, said(q, "error"), said(q, "error_description"))
	case q.Get("code") == "":
		return o, "", "", fmt.Errorf("%w: the answer has no code", ErrRefused)
	}
	if err := i.spend(cookie, at, from); err != nil {
		return o, "", "", err
	}
	oauth := i.oauth(f)
	answer, err := oauth.Exchange(context.WithValue(ctx, oauth2.HTTPClient, i.client), q.Get("code"), oauth2.VerifierOption(i.made("verifier", cookie)))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		if refused.ErrorCode != "invalid_grant" { // which anybody brings about
			i.cfg.Log.Warn("the issuer gives no token", "error", refused.ErrorCode, "why", visible(refused.ErrorDescription))
		}
		return o, "", "", fmt.Errorf("%w: %s gives no token for this login: %s %s", ErrRefused, i.host, visible(refused.ErrorCode), visible(refused.ErrorDescription))
	case err != nil:
		i.cfg.Log.Warn("a login could not be ended", "error", err)
		return o, "", "", ErrAway
	}
	raw, _ := answer.Extra("id_token").(string)
	nonce := i.made("nonce", cookie)
	if o, err = i.verified(ctx, f, raw, &nonce); err != nil || o.Role == "" {
		return o, "", job, err
	}
	return o, i.open(o), job, nil
}

// ---- sessions

// A session stands for an ID token, and ends with it, with this process, or when its owner signs out.

const (
	sessionPrefix = "starling-session-"
	mostSessions  = 10_000 // over all: of who has the most, the one that ends first makes room
	mostOfOne     = 20     // of one person, the same
)

func isSession(given string) bool {
	return len(given) == len(sessionPrefix)+64 && strings.HasPrefix(given, sessionPrefix)
}

// open begins a session of who has signed in.
func (i *Issuer) open(o store.Operator) string {
	b := make([]byte, 32)
	rand.Read(b) // ends the program where the system has no randomness
	token := sessionPrefix + hex.EncodeToString(b)
	i.mu.Lock()
	defer i.mu.Unlock()
	now, of := i.cfg.Now(), map[string]int{}
	for hash, s := range i.sessions {
		if !now.Before(s.Expires) {
			delete(i.sessions, hash)
			continue
		}
		of[s.Name]++
	}
	if of[o.Name] >= mostOfOne {
		i.makeRoom(o.Name)
	} else if len(i.sessions) >= mostSessions {
		most := ""
		for name, n := range of {
			if n > of[most] {
				most = name
			}
		}
		i.makeRoom(most)
	}
	i.sessions[sha256.Sum256([]byte(token))] = o
	return token
}

// makeRoom ends the session of somebody that would end first; mu is held.
func (i *Issuer) makeRoom(name string) {
	var first [32]byte
	for hash, s := range i.sessions {
		if f, ok := i.sessions[first]; s.Name == name && (!ok || s.Expires.Before(f.Expires)) {
			first = hash
		}
	}
	delete(i.sessions, first)
}

func (i *Issuer) session(token string) (store.Operator, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, ok := i.sessions[sha256.Sum256([]byte(token))]
	if !ok || !i.cfg.Now().Before(s.Expires) {
		return store.Operator{}, fmt.Errorf("%w: the session is over: sign in again", ErrRefused)
	}
	return s, nil
}

// SignOut ends a session at once; another token is none's.
func (i *Issuer) SignOut(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.sessions, sha256.Sum256([]byte(token)))
}
