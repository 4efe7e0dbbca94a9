package service

import (
	"cmp"
	"context"
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
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// TLS is the TLS of devices' connections: one of Pinned, Cert with Key, and Host; none of them is clear text.
type TLS struct {
	Pinned      bool   // a certificate kept in Dir, which join tokens pin
	Cert, Key   string // PEM files, read again when they change
	Host        string // that a certificate is had for from an authority, by ACME
	Directory   string // URL of the authority; "" is Let's Encrypt
	Authorities string // PEM file of authorities for Directory; "": the system's
}

// certificate is what --listen shows; nil if it speaks in the clear.
func (c *Config) certificate(log *slog.Logger) (*server.Certificate, error) {
	files, given := c.TLS.Cert != "" || c.TLS.Key != "", 0
	for _, way := range []bool{c.TLS.Pinned, files, c.TLS.Host != ""} {
		if way {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, usage.Errorf("--tls, --tls-cert and --acme are three ways to the same: give one")
	case c.TLS.Directory != "" && c.TLS.Host == "":
		return nil, usage.Errorf("--acme-directory needs --acme")
	case c.TLS.Authorities != "" && c.TLS.Directory == "":
		return nil, usage.Errorf("--acme-ca needs --acme-directory: Let's Encrypt's certificate is checked with the system's authorities")
	case files && (c.TLS.Cert == "" || c.TLS.Key == ""):
		return nil, usage.Errorf("--tls-cert and --tls-key go together")
	case files && c.URL == "":
		return nil, usage.Errorf("--tls-cert needs --url: devices check the certificate for that name")
	case c.TLS.Pinned:
		return server.Pinned(c.Dir)
	case files:
		if err := cmp.Or(named.Check(c.TLS.Cert), named.Check(c.TLS.Key)); err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		return server.FromFiles(c.TLS.Cert, c.TLS.Key, log)
	case c.TLS.Host != "":
		roots, err := c.authorities()
		if err != nil {
			return nil, fmt.Errorf("--acme-ca: %w", err)
		}
		return server.FromACME(c.Dir, c.TLS.Host, c.TLS.Directory, roots), nil
	}
	return nil, nil
}

// mostAuthorities bounds a file of certificates, in bytes.
const mostAuthorities = 1 << 20

// authorities are those of --acme-ca, nil for the system's.
func (c *Config) authorities() (*x509.CertPool, error) {
	if c.TLS.Authorities == "" {
		return nil, nil
	}
	b, err := named.Read(c.TLS.Authorities, mostAuthorities)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b) {
		return nil, named.Errorf("%s: no certificate in PEM is in it", c.TLS.Authorities)
	}
	return roots, nil
}

// proxies are the addresses of --trust-proxy.
func (c *Config) proxies() (trusted []netip.Prefix, err error) {
	for _, text := range c.Trusted {
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

// FreeAdmin is an address of the operator's for which any port will do.
const FreeAdmin = "127.0.0.1:0"

const adminFile = "admin" // holds the operator's address of the last start

// listenAdmin binds the operator's address. Where any port will do it is the one of the
// start before, if that is free: a bookmark and a scraper stay good.
func (c *Config) listenAdmin() (*server.Endpoint, error) {
	host, port, err := net.SplitHostPort(c.Admin)
	if err != nil || port != "0" {
		return c.listenAt(c.Admin)
	}
	path := filepath.Join(c.Dir, adminFile)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the operator's address: %w", err)
	}
	if at, err := netip.ParseAddrPort(strings.TrimSpace(string(before))); err == nil && at.Addr().String() == host {
		if e, err := c.listenAt(at.String()); err == nil {
			return e, nil // else another process has it now
		}
	}
	e, err := c.listenAt(c.Admin)
	if err != nil {
		return nil, err
	}
	if err := durable.Replace(path, []byte(e.Listener.Addr().String()+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("the operator's address: %w", err), e.Listener.Close())
	}
	return e, nil
}

// listenAt binds an address for the operator, with TLS where others reach it.
func (c *Config) listenAt(address string) (*server.Endpoint, error) {
	e, err := server.Listen(address, nil)
	if !errors.Is(err, server.ErrPlain) {
		return e, err
	}
	cert, err := server.Pinned(c.Dir)
	if err != nil {
		return nil, err
	}
	return server.Listen(address, cert)
}

// served is one job, or a site of several.
type served interface {
	Serve(context.Context, *server.Endpoint) error
	ServeAdmin(context.Context, *server.Endpoint) error
	AdminAt(address string) error
	Unfit(context.Context) string
}

// leased holds the lease of the state that is served.
type leased interface {
	Owns() bool     // whether nobody else can have taken it yet
	StandsBy() bool // whether another coordinator waits for it and could serve
}

// serve listens for devices, which come to this process while it holds the lease, and for operators, tells
// reached and shown where, and serves both while run runs. It returns errYielded where it cannot serve and
// another coordinator can.
func (p *parts) serve(ctx context.Context, s served, log *slog.Logger, of leased, reached, shown func(e *server.Endpoint, url string) error,
	run func(context.Context) error,
) error {
	devices, url, err := p.listenDevices(log, of.Owns)
	if err != nil {
		return err
	}
	if err := reached(devices, url); err != nil {
		if errors.Is(err, wire.ErrToken) {
			err = usage.Wrap(err)
		}
		return errors.Join(err, devices.Listener.Close())
	}
	operator, err := p.listenAdmin()
	if err != nil {
		return errors.Join(err, devices.Listener.Close())
	}
	dashboard, end, err := p.reachAdmin(ctx, operator, s.AdminAt)
	if err != nil {
		return errors.Join(err, devices.Listener.Close(), operator.Listener.Close())
	}
	defer end()
	if err := shown(devices, dashboard); err != nil {
		return errors.Join(err, devices.Listener.Close(), operator.Listener.Close())
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- s.Serve(serving, devices) }()
	go func() { ended <- s.ServeAdmin(serving, operator) }()
	running, yield := context.WithCancelCause(ctx)
	defer yield(nil)
	go watch(running, s, of, log, yield)
	err = run(running)
	if errors.Is(context.Cause(running), errYielded) {
		err = errYielded
	}
	stop()
	return errors.Join(err, <-ended, <-ended)
}

// listenDevices opens the devices' listener, and says how they reach it. owns says whether this
// process is sure to be the one that devices are to come to.
func (p *parts) listenDevices(log *slog.Logger, owns func() bool) (*server.Endpoint, string, error) {
	cert, err := p.certificate(log)
	if err != nil {
		return nil, "", err
	}
	url := strings.TrimRight(p.URL, "/")
	if p.throughGateways() {
		endpoint, err := p.listenGateways(cert, owns, log)
		return endpoint, url, err
	}
	endpoint, err := server.Listen(p.Listen, cert)
	if err != nil {
		return nil, "", err
	}
	return endpoint, cmp.Or(url, endpoint.URL), nil
}
