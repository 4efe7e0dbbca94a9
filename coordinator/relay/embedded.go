package relay

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/internal/leaf/strict"
)

// Embedded is a NATS server in an owner's process, for the gateways that it lets in.
type Embedded struct {
	Start    natsaccess.Start
	Dir      string   // the coordinator's folder; each gateway's settings are written to gateways/NAME.yaml in it
	Listen   string   // address
	Gateways []string // names
	TLS      *tls.Config
	Pin      []byte // of its certificate
	Log      *slog.Logger
}

// Open starts the server, writes what each gateway needs to reach it, and returns how this process does.
func (f Embedded) Open() (to Access, err error) {
	owner := OwnerUser(rand.Text())
	known := []natsaccess.User{owner}
	for _, name := range f.Gateways {
		password, err := f.passwordOf(name)
		if err != nil {
			return to, err
		}
		user, err := GatewayUser(name, password)
		if err != nil {
			return to, err
		}
		known = append(known, user)
	}
	s, err := f.Start(natsaccess.Serving{Listen: f.Listen, TLS: f.TLS, Users: known, MaxPayload: MostMessage, Log: f.Log})
	if err != nil {
		return to, fmt.Errorf("--nats-listen %s: %w", f.Listen, err)
	}
	for _, u := range known[1:] {
		if err := f.writeGateway(u, s.Addr().String(), f.Pin); err != nil {
			s.Close()
			return to, err
		}
	}
	f.Log.Info("gateways are let in", "address", s.Addr(), "gateways", f.Gateways)
	to.URL = (&url.URL{Scheme: "nats", User: url.UserPassword(owner.Name, owner.Password), Host: "within"}).String()
	to.Within = s
	return to, nil
}

// gatewaySettings are a gateway's, as its --config.
type gatewaySettings struct {
	Name string `yaml:"name"`
	NATS string `yaml:"nats"`
	Pin  string `yaml:"nats-pin"`
}

func (f Embedded) gatewayFile(name string) string {
	return filepath.Join(f.Dir, "gateways", name+".yaml")
}

// passwordOf is a gateway's password of the start before, or a new one.
func (f Embedded) passwordOf(name string) (string, error) {
	path := f.gatewayFile(name)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return rand.Text(), nil
	}
	if err != nil {
		return "", fmt.Errorf("gateway %s: %w", name, err)
	}
	defer file.Close()
	var was gatewaySettings
	if err := strict.Read(file, &was); err != nil {
		return "", fmt.Errorf("%s: %s; without the file the gateway gets a new password", path, strict.Explain(err, true))
	}
	if u, err := url.Parse(was.NATS); err == nil {
		if password, _ := u.User.Password(); len(password) >= leastPassword {
			return password, nil
		}
	}
	return "", fmt.Errorf("%s: nats needs an address and a password of at least %d letters; delete the file to have a new one made", path, leastPassword)
}

// leastPassword is of one that a person chose, in letters: ours are 26.
const leastPassword = 16

// writeGateway keeps what a gateway needs to get in.
func (f Embedded) writeGateway(u natsaccess.User, at string, pin []byte) error {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() { // each of this machine's: its name is a better guess than any
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	path := f.gatewayFile(u.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("gateway %s: %w", u.Name, err)
	}
	to := url.URL{Scheme: "tls", User: url.UserPassword(u.Name, u.Password), Host: net.JoinHostPort(host, port)}
	text := fmt.Sprintf("name: %q\nnats: %q\nnats-pin: \"%x\"\n", u.Name, to.String(), pin)
	if err := durable.Replace(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("gateway %s: %w", u.Name, err)
	}
	return nil
}
