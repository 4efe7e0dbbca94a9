// Package authority signs certificates of localhost for tests of listeners.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"testing"
	"time"
)

// Authority signs certificates that its Roots trust.
type Authority struct {
	Roots *x509.CertPool

	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// New makes an authority with a key of its own, valid for an hour.
func New(t testing.TB) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ok(t, err)
	cert, err := x509.ParseCertificate(der)
	ok(t, err)
	a := &Authority{Roots: x509.NewCertPool(), key: key, cert: cert}
	a.Roots.AddCert(cert)
	return a
}

// Issue writes a certificate for localhost with the serial number and its key into two PEM files, valid for an hour.
func (a *Authority) Issue(t testing.TB, serial int64, chain, key string) {
	t.Helper()
	a.IssueUntil(t, serial, chain, key, time.Now().Add(time.Hour))
}

// IssueUntil is Issue with the time at which the certificate ends.
func (a *Authority) IssueUntil(t testing.TB, serial int64, chain, key string, until time.Time) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-60 * 24 * time.Hour), NotAfter: until}, a.cert, k.Public(), a.key)
	ok(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	ok(t, err)
	at := time.Now().Add(time.Duration(serial) * time.Second) // a clock too coarse to tell them apart
	for path, b := range map[string]*pem.Block{chain: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		ok(t, errors.Join(os.WriteFile(path, pem.EncodeToMemory(b), 0o600), os.Chtimes(path, at, at)))
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
