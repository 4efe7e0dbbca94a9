package operator

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/internal/durable"
	"github.com/starling-fl/starling/internal/named"
	"github.com/starling-fl/starling/internal/usage"
)

// certificate is what --listen shows; nil if it speaks in the clear.
func (f serveFlags) certificate(log *slog.Logger) (*server.Certificate, error) {
	files, given := f.cert != "" || f.key != "", 0
	for _, way := range []bool{f.tls, files, f.acme != ""} {
		if way {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, usage.Errorf("--tls, --tls-cert and --acme are three ways to the same: give one")
	case f.directory != "" && f.acme == "":
		return nil, usage.Errorf("--acme-directory needs --acme")
	case f.authority != "" && f.directory == "":
		return nil, usage.Errorf("--acme-ca needs --acme-directory: Let's Encrypt's certificate is checked with the system's authorities")
	case files && (f.cert == "" || f.key == ""):
		return nil, usage.Errorf("--tls-cert and --tls-key go together")
	case files && f.url == "":
		return nil, usage.Errorf("--tls-cert needs --url: devices check the certificate for that name")
	case f.tls:
		return server.Pinned(f.dir)
	case files:
		if err := cmp.Or(named.Check(f.cert), named.Check(f.key)); err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		return server.FromFiles(f.cert, f.key, log)
	case f.acme != "":
		roots, err := f.authorities()
		if err != nil {
			return nil, fmt.Errorf("--acme-ca: %w", err)
		}
		return server.FromACME(f.dir, f.acme, f.directory, roots), nil
	}
	return nil, nil
}

// mostAuthorities bounds a file of certificates, in bytes.
const mostAuthorities = 1 << 20

// authorities are those of --acme-ca, nil for the system's.
func (f serveFlags) authorities() (*x509.CertPool, error) {
	if f.authority == "" {
		return nil, nil
	}
	b, err := named.Read(f.authority, mostAuthorities)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b) {
		return nil, named.Errorf("%s: no certificate in PEM is in it", f.authority)
	}
	return roots, nil
}

// proxies are the addresses of --trust-proxy.
func (f serveFlags) proxies() (trusted []netip.Prefix, err error) {
	for _, text := range f.trusted {
		p, err := netip.ParsePrefix(text)
		if ip, single := netip.ParseAddr(text); err != nil && single == nil {
			p, err = ip.Prefix(ip.BitLen())
		}
		if err != nil {
			return nil, usage.Errorf("--trust-proxy is %q: an address, or a range as 10.0.0.0/8", text)
		}
		trusted = append(trusted, p.Masked())
	}
	return trusted, nil
}

const (
	freeAdmin = "127.0.0.1:0"
	adminFile = "admin" // holds the operator's address of the last start
)

// listenAdmin binds the operator's address. Where any port will do it is the one of the
// start before, if that is free: a bookmark and a scraper stay good.
func (f serveFlags) listenAdmin() (*server.Endpoint, error) {
	host, port, err := net.SplitHostPort(f.admin)
	if err != nil || port != "0" {
		return f.listenAt(f.admin)
	}
	path := filepath.Join(f.dir, adminFile)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the operator's address: %w", err)
	}
	if at, err := netip.ParseAddrPort(strings.TrimSpace(string(before))); err == nil && at.Addr().String() == host {
		if e, err := f.listenAt(at.String()); err == nil {
			return e, nil // else another process has it now
		}
	}
	e, err := f.listenAt(f.admin)
	if err != nil {
		return nil, err
	}
	if err := durable.Replace(path, []byte(e.Listener.Addr().String()+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("the operator's address: %w", err), e.Listener.Close())
	}
	return e, nil
}

// listenAt binds an address for the operator, with TLS where others reach it.
func (f serveFlags) listenAt(address string) (*server.Endpoint, error) {
	e, err := server.Listen(address, nil)
	if !errors.Is(err, server.ErrPlain) {
		return e, err
	}
	cert, err := server.Pinned(f.dir)
	if err != nil {
		return nil, err
	}
	return server.Listen(address, cert)
}
