package service

import (
	"log/slog"
	"net/netip"
	"net/url"
	"strings"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/internal/app/usage"
)

// throughGateways says that devices come over NATS.
func (c *Config) throughGateways() bool { return c.NATS.URL != "" || c.NATSListen != "" }

// checkNATS checks the flags of NATS against each other.
func (c *Config) checkNATS() error {
	if err := c.checkEmbedded(); err != nil || !c.throughGateways() {
		return err
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" {
		return usage.Errorf("--nats and --nats-listen need --url: the address of the gateways, as https://fl.example.org:8443")
	}
	plain := !c.TLS.Pinned && c.TLS.Cert == "" && c.TLS.Host == ""
	if ip, err := netip.ParseAddr(u.Hostname()); plain && (err != nil || !ip.IsLoopback()) {
		return usage.Errorf("gateways without TLS are shown, and may change, all that devices send: give --tls, --tls-cert or --acme")
	}
	return nil
}

func (c *Config) checkEmbedded() error {
	switch {
	case c.NATS.URL != "" && c.NATSListen != "":
		return usage.Errorf("--nats and --nats-listen are two ways to have a NATS server: give one; several servers of one --store need one that is not theirs, by --nats")
	case c.NATSListen == "" && len(c.Gateways) > 0:
		return usage.Errorf("--gateway is for --nats-listen: the NATS server of --nats has its own list of users")
	case c.NATSListen == "":
		return nil
	case c.StartNATS == nil:
		return usage.Errorf("--nats-listen: this program was built without a NATS server; the one that make build and make release make has it, or give --nats")
	case c.NATS.Access != natsaccess.Access{}:
		return usage.Errorf("--nats-listen takes none of --nats-creds, --nats-ca, --nats-cert, --nats-key and --nats-pin: they are for a server elsewhere")
	case len(c.Gateways) == 0:
		return usage.Errorf("--nats-listen needs --gateway: the name of each gateway that is let in")
	}
	known := map[string]bool{}
	for _, name := range c.Gateways {
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

// listenGateways opens the devices' listener where gateways pass them on, over the NATS servers elsewhere or
// one in this process.
func (p *parts) listenGateways(cert *server.Certificate, owns func() bool, log *slog.Logger) (*server.Endpoint, error) {
	end, nc := func() {}, p.nc
	if nc == nil {
		own, err := server.Pinned(p.Dir)
		if err != nil {
			return nil, err
		}
		to, err := relay.Embedded{Start: p.StartNATS, Dir: p.Dir, Listen: p.NATSListen, Gateways: p.Gateways, TLS: own.TLS(), Pin: own.Pin(), Log: log}.Open()
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
