package server

import (
	"bytes"
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
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-fl/starling/internal/durable"
)

// ErrPlain is a plain listener on an address that others can reach.
var ErrPlain = errors.New("server: without TLS only loopback addresses are served")

// Endpoint is a bound listener and how devices reach it.
type Endpoint struct {
	Listener net.Listener
	URL      string // http://host:port or https://host:port
	Pin      []byte // SHA-256 of the certificate; nil without TLS

	counter *countingListener
}

// Listen binds addr. With TLS it shows a self-signed certificate that is kept in
// dir and pinned by the join token; without, addr must be a loopback address.
func Listen(addr, dir string, secure bool) (*Endpoint, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("server: address %q: %w", addr, err)
	}
	if !secure {
		ip := net.ParseIP(host)
		if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("%w, not %q", ErrPlain, addr)
		}
	}
	var cert tls.Certificate
	if secure {
		if cert, err = certificate(dir); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	counter := &countingListener{Listener: ln}
	e := &Endpoint{Listener: counter, URL: "http://" + ln.Addr().String(), counter: counter}
	if secure {
		// HTTP/1.1 only: WebSocket needs it.
		e.Listener = tls.NewListener(counter, &tls.Config{
			Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		})
		e.URL = "https://" + ln.Addr().String()
		sum := sha256.Sum256(cert.Certificate[0])
		e.Pin = sum[:]
	}
	return e, nil
}

// certificate loads the self-signed certificate of dir, or makes it.
func certificate(dir string) (tls.Certificate, error) {
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
