package operator

import (
	"log/slog"
	"net/netip"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/internal/usage"
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
		return usage.Errorf("--nats and --nats-listen need --url: the address of the gateways, as https://fl.example.org:8443")
	}
	plain := !f.tls && f.cert == "" && f.acme == ""
	if ip, err := netip.ParseAddr(u.Hostname()); plain && (err != nil || !ip.IsLoopback()) {
		return usage.Errorf("gateways without TLS are shown, and may change, all that devices send: give --tls, --tls-cert or --acme")
	}
	return nil
}

func (f serveFlags) checkEmbedded() error {
	switch {
	case f.nats.URL != "" && f.natsListen != "":
		return usage.Errorf("--nats and --nats-listen are two ways to have a NATS server: give one; several servers of one --store need one that is not theirs, by --nats")
	case f.natsListen == "" && len(f.gateways) > 0:
		return usage.Errorf("--gateway is for --nats-listen: who may use the NATS of --nats is said in its own configuration")
	case f.natsListen == "":
		return nil
	case f.startNATS == nil:
		return usage.Errorf("--nats-listen: this program was built without a NATS server; the one that make build and make release make has it, or give --nats")
	case f.nats.Access != natsaccess.Access{}:
		return usage.Errorf("--nats-listen takes none of --nats-creds, --nats-ca, --nats-cert, --nats-key and --nats-pin: they are for a server elsewhere")
	case len(f.gateways) == 0:
		return usage.Errorf("--nats-listen needs --gateway: the name of each gateway that is let in")
	}
	known := map[string]bool{}
	for _, name := range f.gateways {
		if _, err := relay.GatewayUser(name, ""); err != nil {
			return usage.Errorf("--gateway: %v", err)
		}
		file := strings.ToLower(name) // as some machines have files' names
		if known[file] {
			return usage.Errorf("--gateway %s is given twice: a name is one gateway's", name)
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
		own, err := server.Pinned(f.dir)
		if err != nil {
			return nil, err
		}
		to, err := relay.Embedded{Start: f.startNATS, Dir: f.dir, Listen: f.natsListen, Gateways: f.gateways, TLS: own.TLS(), Pin: own.Pin(), Log: log}.Open()
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
