package operator

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/durable"
	"github.com/starling-fl/starling/internal/strict"
)

// throughGateways says that devices come over NATS.
func (f serveFlags) throughGateways() bool { return f.nats.URL != "" || f.natsListen != "" }

// checkNATS checks the flags of NATS against each other.
func (f serveFlags) checkNATS() error {
	if err := f.checkEmbedded(); err != nil || !f.throughGateways() {
		return err
	}
	u, err := url.Parse(f.url)
	if err != nil || u.Hostname() == "" {
		return command.Usagef("--nats and --nats-listen need --url: the address of the gateways, as https://fl.example.org:8443")
	}
	plain := !f.tls && f.cert == "" && f.acme == ""
	if ip, err := netip.ParseAddr(u.Hostname()); plain && (err != nil || !ip.IsLoopback()) {
		return command.Usagef("gateways without TLS are shown, and may change, all that devices send: give --tls, --tls-cert or --acme")
	}
	return nil
}

func (f serveFlags) checkEmbedded() error {
	switch {
	case f.nats.URL != "" && f.natsListen != "":
		return command.Usagef("--nats and --nats-listen are two ways to have a NATS server: give one; several servers of one --store need one that is not theirs, by --nats")
	case f.natsListen == "" && len(f.gateways) > 0:
		return command.Usagef("--gateway is for --nats-listen: who may use the NATS of --nats is said in its own configuration")
	case f.natsListen == "":
		return nil
	case f.startNATS == nil:
		return command.Usagef("--nats-listen: this program was built without a NATS server; the one that make build and make release make has it, or give --nats")
	case f.nats.Access != natsaccess.Access{}:
		return command.Usagef("--nats-listen takes none of --nats-creds, --nats-ca, --nats-cert, --nats-key and --nats-pin: they are for a server elsewhere")
	case len(f.gateways) == 0:
		return command.Usagef("--nats-listen needs --gateway: the name of each gateway that is let in")
	}
	known := map[string]bool{}
	for _, name := range f.gateways {
		if _, err := relay.GatewayUser(name, ""); err != nil {
			return command.Usagef("--gateway: %v", err)
		}
		file := strings.ToLower(name) // as some machines have files' names
		if known[file] {
			return command.Usagef("--gateway %s is given twice: a name is one gateway's", name)
		}
		known[file] = true
	}
	return nil
}

// reach connects to the NATS servers of --nats, and gives its end back; nil if there are none.
func (f serveFlags) reach(log *slog.Logger) (nc *nats.Conn, end func(), err error) {
	if f.nats.URL == "" {
		return nil, func() {}, nil
	}
	if nc, err = relay.Connect(f.nats, "owner", orSilent(log)); err != nil {
		return nil, nil, err
	}
	return nc, nc.Close, nil
}

// listenGateways opens the devices' listener where gateways pass them on, over nc or, where that
// is nil, a server in this process.
func (f serveFlags) listenGateways(nc *nats.Conn, cert *server.Certificate, owns func() bool, log *slog.Logger) (*server.Endpoint, error) {
	end := func() {}
	if nc == nil {
		to, err := f.embedNATS(log)
		if err != nil {
			return nil, err
		}
		if nc, err = relay.Connect(to, "owner", log); err != nil {
			to.Within.Close()
			return nil, err
		}
		end = func() { nc.Close(); to.Within.Close() }
	}
	l, err := relay.Listen(nc, owns, log)
	if err != nil {
		end()
		return nil, err
	}
	return server.On(closing{l, end}, cert), nil
}

// closing is a listener with what it needs and nobody else.
type closing struct {
	*relay.Listener
	also func()
}

func (c closing) Close() error {
	err := c.Listener.Close()
	c.also()
	return err
}

// embedNATS starts a NATS server here, and writes what each gateway needs to reach it.
func (f serveFlags) embedNATS(log *slog.Logger) (to relay.Access, err error) {
	cert, err := server.Pinned(f.dir)
	if err != nil {
		return to, err
	}
	owner := relay.OwnerUser(rand.Text())
	known := []natsaccess.User{owner}
	for _, name := range f.gateways {
		password, err := f.passwordOf(name)
		if err != nil {
			return to, err
		}
		user, err := relay.GatewayUser(name, password)
		if err != nil {
			return to, err
		}
		known = append(known, user)
	}
	s, err := f.startNATS(natsaccess.Serving{Listen: f.natsListen, TLS: cert.TLS(), Users: known, MaxPayload: relay.MostMessage, Log: log})
	if err != nil {
		return to, fmt.Errorf("--nats-listen %s: %w", f.natsListen, err)
	}
	for _, u := range known[1:] {
		if err := f.writeGateway(u, s.Addr().String(), cert.Pin()); err != nil {
			s.Close()
			return to, err
		}
	}
	log.Info("gateways are let in", "address", s.Addr(), "gateways", f.gateways)
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

func (f serveFlags) gatewayFile(name string) string {
	return filepath.Join(f.dir, "gateways", name+".yaml")
}

// passwordOf is a gateway's password of the start before, or a new one.
func (f serveFlags) passwordOf(name string) (string, error) {
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
	return "", fmt.Errorf("%s: nats is no address with a password of %d letters at least; without the file the gateway gets a new one", path, leastPassword)
}

// leastPassword is of one that a person chose, in letters: ours are 26.
const leastPassword = 16

// writeGateway keeps what a gateway needs to get in.
func (f serveFlags) writeGateway(u natsaccess.User, at string, pin []byte) error {
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
