package server

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/starling-fl/starling/internal/leaf/certificate"
	"github.com/starling-fl/starling/internal/leaf/durable"
)

// Certificate is a listener's certificate: Pinned, FromFiles or FromACME.
type Certificate struct {
	get    func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	protos []string
	leaf   func() *x509.Certificate // shown now; nil before an authority has issued one
	pin    []byte
	name   string // by which an authority knows the listener; "": its address
}

// Ends returns when the certificate that is shown now ends; zero before an authority has issued one.
func (c *Certificate) Ends() time.Time {
	if leaf := c.leaf(); leaf != nil {
		return leaf.NotAfter
	}
	return time.Time{}
}

// Check returns an error outside the certificate's dates: devices that check it refuse the listener.
// A pinned one has no such dates: devices know it by its pin.
func (c *Certificate) Check(now time.Time) error {
	leaf := c.leaf()
	switch {
	case c.pin != nil || leaf == nil:
		return nil
	case now.After(leaf.NotAfter):
		return fmt.Errorf("it has ended, %s: renew it", leaf.NotAfter.UTC().Format(time.DateTime))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("it begins only at %s: look at this machine's clock", leaf.NotBefore.UTC().Format(time.DateTime))
	}
	return nil
}

// TLS returns the configuration of a listener with the certificate.
func (c *Certificate) TLS() *tls.Config {
	// Small records first are for pages that are shown as they come, and cost a device's turns many writes.
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true}
}

// Pin is the SHA-256 by which clients recognise the certificate; nil if authorities vouch for it.
func (c *Certificate) Pin() []byte { return c.pin }

// Pinned returns a self-signed certificate that is kept in dir, created if there is none, and
// pinned by join tokens, so that no authority is involved.
func Pinned(dir string) (*Certificate, error) {
	cert, err := pinnedIn(dir)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(cert.Certificate[0])
	return &Certificate{pin: sum[:], leaf: func() *x509.Certificate { return cert.Leaf },
		get: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }}, nil
}

// FromFiles returns a certificate chain and its key, PEM, that another program renews: the files
// are read again when they change. If that fails, the old ones stay in use and log says so. Devices
// check it with their system's authorities.
func FromFiles(chain, key string, log *slog.Logger) (*Certificate, error) {
	f, err := certificate.Open(chain, key, log)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return &Certificate{get: f.Get, leaf: f.Leaf}, nil
}

// FromACME returns a certificate for host that an authority issues by ACME (RFC 8555, TLS-ALPN-01:
// the listener must be reachable at host on port 443) and that renews itself. It is kept below dir.
// directory is the authority's, empty for Let's Encrypt, and roots are whom its own certificate is
// checked with, nil for the system's.
func FromACME(dir, host, directory string, roots *x509.CertPool) *Certificate {
	m := &autocert.Manager{Prompt: autocert.AcceptTOS, HostPolicy: autocert.HostWhitelist(host), Cache: autocert.DirCache(filepath.Join(dir, "acme"))}
	m.Client = &acme.Client{DirectoryURL: cmp.Or(directory, autocert.DefaultACMEDirectory)}
	if roots != nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		m.Client.HTTPClient = &http.Client{Transport: transport}
	}
	var shown atomic.Pointer[x509.Certificate]
	get := func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert, err := m.GetCertificate(hello)
		if err != nil {
			return nil, fmt.Errorf("server: certificate by ACME: %w", err)
		}
		if cert.Leaf != nil && !slices.Contains(hello.SupportedProtos, acme.ALPNProto) { // that one is a challenge's
			shown.Store(cert.Leaf)
		}
		return cert, nil
	}
	return &Certificate{get: get, leaf: shown.Load, protos: []string{acme.ALPNProto}, name: host}
}

// pinnedIn loads the self-signed certificate of dir, or makes it.
func pinnedIn(dir string) (tls.Certificate, error) {
	path := filepath.Join(dir, "tls.pem")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = createCertificate(path)
	}
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("server: certificate: %w", err)
	}
	cert, err := tls.X509KeyPair(b, b)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("server: certificate %s: %w", path, err)
	}
	return cert, nil
}

// createCertificate makes a certificate and keeps it. Its pin is in tokens that
// were handed out: it must outlive a power cut, and of two processes that start
// at once both must show the same.
func createCertificate(path string) ([]byte, error) {
	b, err := selfSigned()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := durable.Create(path, b, 0o600); errors.Is(err, fs.ErrExist) {
		return os.ReadFile(path)
	} else if err != nil {
		return nil, err
	}
	return b, nil
}

// selfSigned makes a P-256 key and a certificate for it. Devices trust its pin,
// not its name or dates.
func selfSigned() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "starling coordinator"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = errors.Join(
		pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.Encode(&out, &pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	return out.Bytes(), err
}
