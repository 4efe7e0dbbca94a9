package statement

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
)

const job, address = "triage", "https://learn.clinic.example:9443"

func key(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func signed() Statement {
	a := Statement{Organisation: "Riverside Clinics", Purpose: "Nurses see urgent messages first.", Receives: "our six clinics", Contact: "privacy@clinic.example",
		Terms: "https://clinic.example/terms", Until: "2027-01-31", Domain: "clinic.example", Address: address}
	a.Signature = a.Sign(job, key(1))
	return a
}

func public(b byte) []ed25519.PublicKey {
	return []ed25519.PublicKey{key(b).Public().(ed25519.PublicKey)}
}

func TestSignatureHoldsForItsJobAndAddressAlone(t *testing.T) {
	a := signed()
	if err := a.Holds(job, address+"/", append(public(2), public(1)...)); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"another key":     a.Holds(job, address, public(2)),
		"no key":          a.Holds(job, address, nil),
		"another job":     a.Holds("triage 2", address, public(1)),
		"another address": a.Holds(job, "https://evil.example", public(1)),
	} {
		if !errors.Is(err, ErrStatement) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(a *Statement){
		"organisation": func(a *Statement) { a.Organisation += "!" }, "purpose": func(a *Statement) { a.Purpose = "Sell it." }, "receives": func(a *Statement) { a.Receives = "anybody" },
		"contact": func(a *Statement) { a.Contact = "" }, "terms": func(a *Statement) { a.Terms = "https://evil.example" }, "until": func(a *Statement) { a.Until = "2037-01-31" },
		"domain": func(a *Statement) { a.Domain = "evil.example" }, "signature": func(a *Statement) { a.Signature = "" },
		// What moves from one field to the next is another statement.
		"a border": func(a *Statement) { a.Purpose, a.Receives = a.Purpose+" "+a.Receives, "" },
		"a line":   func(a *Statement) { a.Purpose, a.Receives = a.Purpose+"\n"+a.Receives, "" },
	} {
		other := signed()
		if change(&other); other.Holds(job, address, public(1)) == nil {
			t.Errorf("with another %s it holds", name)
		}
	}
}

func TestCheckNamesTheKey(t *testing.T) {
	for want, change := range map[string]func(a *Statement){
		"about.organisation is missing":            func(a *Statement) { a.Organisation = "" },
		"about.organisation has 81 characters":     func(a *Statement) { a.Organisation = strings.Repeat("ä", 81) },
		"about.purpose holds a character":          func(a *Statement) { a.Purpose = "a\nb" },
		"about.contact holds a character":          func(a *Statement) { a.Contact = "a\u202eb" },
		"about.receives begins or ends":            func(a *Statement) { a.Receives = " x" },
		"about.terms is":                           func(a *Statement) { a.Terms = "javascript:alert(1)" },
		"about.until is":                           func(a *Statement) { a.Until = "2027-02-30" },
		`about.domain is "localhost"`:              func(a *Statement) { a.Domain = "localhost" },
		`about.domain is "127.0.0.1"`:              func(a *Statement) { a.Domain = "127.0.0.1" },
		`about.domain is "a.example/x"`:            func(a *Statement) { a.Domain = "a.example/x" },
		"about.address is":                         func(a *Statement) { a.Address = "http://clinic.example" },
		"about.signature needs":                    func(a *Statement) { a.Address = "" },
		"about.signature is not what starling job": func(a *Statement) { a.Signature = "AAAA" },
	} {
		a := signed()
		if change(&a); a.Check() == nil || !strings.Contains(a.Check().Error(), want) {
			t.Errorf("%v, want %q", a.Check(), want)
		}
	}
	if err := (Statement{}).Check(); err != nil {
		t.Error(err)
	}
}

func FuzzKeys(f *testing.F) {
	b, err := KeyFile(public(1)...)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(b), `{"keys":[]}`, `{"keys":["AA=="]}`, `{"keys":[null]}`, "", "{"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := Keys(b)
		if (err == nil) != (len(keys) > 0) || len(keys) > mostKeys {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		for _, k := range keys {
			_ = signed().Holds(job, address, []ed25519.PublicKey{k}) // no length panics
		}
	})
}

func TestKeyFileIsRead(t *testing.T) {
	b, err := KeyFile(append(public(1), public(2)...)...)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := Keys(b)
	if err != nil || len(keys) != 2 || signed().Holds(job, address, keys) != nil {
		t.Fatalf("%s: %d keys, %v", b, len(keys), err)
	}
}
