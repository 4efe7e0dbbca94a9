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
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/starling-fl/starling/internal/leaf/durable"
)

// Certificate is a listener's certificate: Pinned, FromFiles or FromACME.
type Certificate struct {
	get    func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	protos []string
	pin    []byte
	name   string // by which an authority knows the listener; "": its address
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
	return &Certificate{pin: sum[:], get: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }}, nil
}

// rereadEvery is how often files are looked at: a renewed certificate is shown after that
// at the latest.
const rereadEvery = 10 * time.Second

// FromFiles returns a certificate chain and its key, PEM, that somebody else renews: the files are
// read again when they change. If that fails, the old ones stay in use and log says so. Devices
// check it with their system's authorities.
func FromFiles(chain, key string, log *slog.Logger) (*Certificate, error) {
	f := &fileCertificate{chain: chain, key: key, log: log}
	if err := f.read(); err != nil {
		return nil, err
	}
	return &Certificate{get: f.get}, nil
}

// fileCertificate is a certificate that is read again.
type fileCertificate struct {
	chain, key string
	log        *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	changed [2]time.Time
	failed  string // what was logged last
	cert    *tls.Certificate
}

func (f *fileCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) < rereadEvery {
		return f.cert, nil
	}
	err := f.read()
	if err == nil {
		f.failed = ""
	} else if text := err.Error(); text != f.failed {
		f.failed = text
		f.log.Error("the certificate cannot be read again; the one of before is shown", "error", err)
	}
	return f.cert, nil
}

// read takes the files in where they have changed since.
func (f *fileCertificate) read() error {
	f.looked = time.Now()
	var changed [2]time.Time
	for i, path := range []string{f.chain, f.key} {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("server: certificate: %w", err)
		}
		changed[i] = info.ModTime()
	}
	if f.cert != nil && changed == f.changed {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(f.chain, f.key)
	if err != nil {
		return fmt.Errorf("server: certificate %s with key %s: %w", f.chain, f.key, err)
	}
	if f.cert != nil {
		f.log.Info("a renewed certificate is shown", "until", cert.Leaf.NotAfter)
	}
	if left := time.Until(cert.Leaf.NotAfter); left < 7*24*time.Hour {
		f.log.Warn("the certificate ends soon", "until", cert.Leaf.NotAfter)
	}
	f.cert, f.changed = &cert, changed
	return nil
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
	return &Certificate{get: m.GetCertificate, protos: []string{acme.ALPNProto}, name: host}
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
