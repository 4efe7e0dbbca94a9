// Package server puts a coordinator on the network: listeners with TLS and a cap on connections,
// devices' sessions as WebSockets, blobs, pages, and the operator's endpoints behind a token. [New]
// serves one coordinator, [NewSite] several at one address; [Listen] binds an [Endpoint] with a
// [Certificate]. The package holds no state of a job: everything that must outlive the process is
// the coordinator's.
//
//	e, err := server.Listen("127.0.0.1:8080", nil)
//	...
//	s, err := server.New(c, server.Config{})
//	...
//	err = s.Serve(ctx, e)
//
// # Threat model
//
// Strangers open sockets and say nothing, send byte by byte, stop reading, come in thousands from
// one address, use names that are not ours (DNS rebinding) and come from pages of another origin.
// Each connection is bounded in time, all together stay below the process's limit of open files,
// and none of it reaches the engine before a device has proved its identity. The operator's
// listener is apart.
package server

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/internal/socket"
	"github.com/starling-fl/starling/coordinator/signin"
	"github.com/starling-fl/starling/coordinator/store"
)

// Config sets addresses, TLS and limits of a served coordinator.
type Config struct {
	// Pages are the join page and the dashboard, served at /; nil serves none.
	Pages http.Handler
	// Sample is a public labelled file for visitors to try, of at most MostSample
	// bytes, and SampleName its name, which says its format; empty: none.
	Sample     []byte
	SampleName string
	// Trusted lists proxies whose X-Forwarded-For is believed: limits per address then apply to the addresses that
	// they name.
	Trusted []netip.Prefix
	// Origins lists other sites whose pages may be devices, see ParseOrigin; nil: none.
	Origins []string
	// Version is the program's, as /metrics has it.
	Version string
	// Fleet opens the operators' view of the devices, and AdminToken is the dashboard's token, if
	// the job is one of several over a fleet; nil and empty mean the job's own.
	Fleet      func() (*store.Fleet, error)
	AdminToken string
	// FleetBudget is what all jobs over the fleet may spend together, epsilon 0 for no limit; nil: none.
	FleetBudget func() (epsilon, delta float64)
	// SignIn lets operators sign in by an OpenID provider, in addition to their tokens; nil: by
	// tokens only.
	SignIn *signin.Issuer
	// MaxPerAddress bounds the open connections of one address (of one /64 in IPv6). 0 is an eighth
	// of what the process may have, and exempts loopback, where a proxy may be.
	MaxPerAddress int
	// Gateways says that devices' connections come by gateways, and are no open files here.
	Gateways bool
}

// MostSample bounds a sample: it is held in memory and served to anyone.
const MostSample = 4 << 20

// Server serves one coordinator.
type Server struct {
	desk
	listening listening
	c         *coordinator.Coordinator
	cfg       Config
	sockets   *sockets // connections of all listeners for devices
	terms     socket.Terms
	about     func() (described, error)
	card      func() ([]byte, error)
	says      asks
	origins   []string // other sites whose pages may be devices
	gzipped   sync.Map // [32]byte to []byte: blobs as browsers get them; nil: as they are
}

// desk is what a server knows of a fleet and of its operators, whichever job they ask about.
type desk struct {
	log        *slog.Logger
	fleet      func() (*store.Fleet, error)
	changed    func() // called when an operator has changed something
	adminToken string
	job        string // its name, where it is one of several; viewers named at its desk see it alone
	leads      string // a token without its secret: to a job that is one of several; "": the fleet's own
	trusted    []netip.Prefix
	issuer     *signin.Issuer // nil: operators have tokens of ours alone
	names      sync.Map       // by which devices reach us
	fronts     sync.Map       // the same with their ports, as in the origin of a page
	link       atomic.Value   // joinLink
}

// joinLink is the join page's address with a token behind the #: a browser sends it
// to nobody.
type joinLink struct {
	address string
	local   bool // only this machine reaches it
}

// New serves c; call it before the first session. Running and closing the coordinator stays the
// caller's task.
func New(c *coordinator.Coordinator, cfg Config) (*Server, error) {
	if len(cfg.Sample) > MostSample {
		return nil, fmt.Errorf("server: the sample %s has %d bytes, limit %d", cfg.SampleName, len(cfg.Sample), MostSample)
	}
	s := &Server{c: c, cfg: cfg, desk: desk{log: c.Log(), fleet: c.Fleet, changed: func() {}, adminToken: cfg.AdminToken, trusted: cfg.Trusted, issuer: cfg.SignIn}}
	if cfg.Fleet != nil {
		s.fleet = cfg.Fleet
	}
	var err error
	if s.origins, err = parseOrigins(cfg.Origins); err != nil {
		return nil, err
	}
	want := c.MaxConnections()
	s.sockets = newSockets(want, cfg.MaxPerAddress, filesFor(cfg.Gateways))
	c.LimitSessions(s.sockets.most)
	s.terms = socket.Terms{Most: c.MaxFrame, Room: socket.NewRoom(socket.DefaultRoom),
		Origins: s.origins, Text: coordinator.ErrNotBinary, Long: coordinator.ErrTooLong}
	if s.sockets.most < want {
		s.log.Warn("the limit of open files bounds the connections", "most", s.sockets.most, "wanted", want, "mend", "ulimit -n")
	}
	about := sync.OnceValues(c.About)
	s.card = sync.OnceValues(func() ([]byte, error) {
		a, err := about()
		if err != nil {
			return nil, err
		}
		var epsilon, delta float64
		if cfg.FleetBudget != nil {
			epsilon, delta = cfg.FleetBudget()
		}
		return c.Card(a, epsilon, delta)
	})
	s.about = sync.OnceValues(func() (described, error) {
		a, err := about()
		if err != nil {
			return described{}, err
		}
		if len(cfg.Sample) > 0 {
			a.Sample = cfg.SampleName
		}
		return describe(a)
	})
	s.says = asks{client: http.DefaultClient, log: c.Log()}
	if s.adminToken != "" {
		return s, nil
	}
	// It protects the operator, not a reproducible run: it is never seeded.
	b, err := c.Secret("admin")
	s.adminToken = hex.EncodeToString(b)
	return s, err
}

// Token is the argument of `starling join` for a coordinator that devices reach at baseURL
// (http://host:port or https://host:port) with the given certificate pin. From then on requests for
// that host are accepted.
func (s *Server) Token(baseURL string, pin []byte) string {
	s.answersTo(baseURL)
	t := s.c.Token(baseURL, pin)
	s.link.Store(joinLink{baseURL + "/#" + t, isLocal(baseURL)})
	return t
}

// JoinLink is the address of the join page for the last Token, empty before; local reports that
// only this machine reaches it.
func (s *desk) JoinLink() (address string, local bool) {
	l, _ := s.link.Load().(joinLink)
	return l.address, l.local
}

// AdminToken is the dashboard's token: 64 hexadecimal digits, drawn once and kept in the store.
func (s *desk) AdminToken() string { return s.adminToken }

// serveSession is the WebSocket endpoint: one call a connection.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request) {
	err := s.c.Attend(func() (coordinator.Conn, error) {
		// Accept answers where it cannot.
		conn, err := socket.Accept(w, r, s.terms)
		if err != nil {
			return nil, err
		}
		p := coordinator.Peer{Address: s.cameFrom(r), Counted: isCounted(r.Context()), Request: requestOf(r.Context())}
		if r.TLS != nil {
			p.Export = r.TLS.ExportKeyingMaterial
		}
		return session{conn, p}, nil
	})
	if errors.Is(err, coordinator.ErrFull) {
		w.Header().Set("Retry-After", "30")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// session is a device's connection.
type session struct {
	*socket.Socket
	peer coordinator.Peer
}

func (s session) Peer() coordinator.Peer { return s.peer }
