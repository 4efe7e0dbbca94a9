// Package loadtest plays thousands of light devices against a coordinator: they speak the
// real protocol with real masking, and train nothing.
//
// Each has an identity of its own, which stays enrolled: a coordinator that was tested counts
// them in its population. It is for one that was made to be tested.
package loadtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Config sets a fleet's size and behaviour.
type Config struct {
	Devices int
	// Drop is the chance that a device hangs up before its update and comes back a second
	// later.
	Drop float64
	// Late is the delay with which one device of the fleet sends its shares in every round.
	Late time.Duration
	// By are addresses (host:port) that devices dial in turn, in place of the token's: the
	// gateways behind its name.
	By []string
}

// Fleet is all devices.
type Fleet struct {
	cfg   Config
	work  chan struct{} // a place a processor
	token wire.Token
	https []*http.Client // one for each of By; devices share them
	late  atomic.Uint64  // round whose late device is chosen
	seen  seen
}

// handshakes is how many devices join at a time.
const handshakes = 64

// errProviders is a job that no light device takes part in.
var errProviders = errors.New("the job protects providers inside devices; these devices have none")

// New makes a fleet that joins by a token, as serve prints it.
func New(cfg Config, joinToken string) (*Fleet, error) {
	token, err := wire.ParseToken(joinToken)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxConnsPerHost: 0, MaxIdleConnsPerHost: 64}
	f := &Fleet{cfg: cfg, token: token, work: make(chan struct{}, runtime.GOMAXPROCS(0)), seen: seen{rounds: map[uint64]*round{}}}
	if len(token.Pin) > 0 {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, // the pin is verified instead
			VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
				if sum := sha256.Sum256(raw[0]); !bytes.Equal(sum[:], token.Pin) {
					return errors.New("the coordinator's certificate is not the one that the token pins")
				}
				return nil
			}}
	}
	for _, at := range cfg.By {
		by := transport.Clone()
		by.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at)
		}
		f.https = append(f.https, &http.Client{Transport: by})
	}
	if len(f.https) == 0 {
		f.https = []*http.Client{{Transport: transport}}
	}
	return f, nil
}

// Run plays all devices until the job is over for each, or ctx is done.
func (f *Fleet) Run(ctx context.Context) {
	defer func() {
		for _, c := range f.https {
			c.CloseIdleConnections()
		}
	}()
	joining := make(chan struct{}, handshakes)
	var wg sync.WaitGroup
	for i := range f.cfg.Devices {
		wg.Go(func() { f.play(ctx, joining, f.https[i%len(f.https)]) })
	}
	wg.Wait()
}

// play is one device's life.
func (f *Fleet) play(ctx context.Context, joining chan struct{}, by *http.Client) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	for err == nil && ctx.Err() == nil {
		d := &device{Fleet: f, http: by, key: key, gone: make(chan struct{})}
		select {
		case joining <- struct{}{}:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		err = d.dial(ctx)
		<-joining
		if err == nil {
			f.seen.joined(time.Since(began))
			err = d.play(ctx)
			f.seen.left()
		}
		if d.conn != nil {
			d.conn.CloseNow()
		}
		var told *wire.Error
		pause := time.Second
		switch {
		case err == nil:
			f.seen.finish()
			return
		case ctx.Err() != nil: // the time is up
			return
		case errors.Is(err, errProviders):
			f.seen.end(err)
			return
		case errors.Is(err, errDropped):
		case errors.As(err, &told) && told.RetryMillis == 0:
			f.seen.end(err)
			return
		case told != nil:
			pause = time.Duration(told.RetryMillis) * time.Millisecond
		default:
			f.seen.broke(err)
		}
		err = nil
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// Report holds the counts that the devices saw.
type Report struct {
	Devices   int     `json:"devices"`
	Connected int     `json:"connected"` // at most, at a time
	Finished  int     `json:"finished"`  // were told that the job is over
	Ended     int     `json:"ended"`     // were told that they may not come back
	Broken    int     `json:"broken"`    // connections that ended by themselves, or could not be made
	Cause     string  `json:"cause,omitempty"`
	Seconds   float64 `json:"seconds"`
	// Handshakes, from dialling to being enrolled, of 64 at a time.
	HandshakeMedian float64 `json:"handshake_median_seconds"`
	HandshakeP99    float64 `json:"handshake_p99_seconds"`
	Rounds          []Round `json:"rounds"`
}

// Round is a round in which devices of the fleet took part.
type Round struct {
	Round     uint64  `json:"round"`
	Assigned  int     `json:"assigned"`
	Committed int     `json:"committed"` // devices that were told so
	Abandoned int     `json:"abandoned"`
	Dropped   int     `json:"dropped"`
	Seconds   float64 `json:"seconds"` // from the first assignment to the last outcome
}

// seen is what becomes of the devices.
type seen struct {
	mu         sync.Mutex
	now        int // connected
	report     Report
	handshakes []float64
	rounds     map[uint64]*round
}

type round struct {
	Round
	began, last time.Time
}

// mostKept bounds what is remembered of each kind.
const mostKept = 1 << 20

func (s *seen) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *seen) joined(took time.Duration) {
	s.do(func() {
		s.now++
		s.report.Connected = max(s.report.Connected, s.now)
		if len(s.handshakes) < mostKept {
			s.handshakes = append(s.handshakes, took.Seconds())
		}
	})
}

func (s *seen) left()   { s.do(func() { s.now-- }) }
func (s *seen) finish() { s.do(func() { s.report.Finished++ }) }
func (s *seen) end(err error) {
	s.do(func() {
		s.report.Ended++
		s.report.Cause = fmt.Sprint(err)
	})
}

func (s *seen) broke(err error) {
	s.do(func() {
		s.report.Broken++
		if s.report.Cause == "" {
			s.report.Cause = fmt.Sprint(err)
		}
	})
}

// at is a round's entry; under mu.
func (s *seen) at(id uint64) *round {
	r := s.rounds[id]
	if r == nil {
		r = &round{Round: Round{Round: id}, began: time.Now()}
		if len(s.rounds) < mostKept {
			s.rounds[id] = r
		}
	}
	r.last = time.Now()
	return r
}

func (s *seen) assigned(id uint64) { s.do(func() { s.at(id).Assigned++ }) }

func (s *seen) outcome(m *wire.Outcome) {
	s.do(func() {
		r := s.at(m.Round)
		switch m.Result {
		case wire.OutcomeCommitted:
			r.Committed++
		case wire.OutcomeAbandoned:
			r.Abandoned++
		case wire.OutcomeDropped:
			r.Dropped++
		}
	})
}

// Report returns the counts so far.
func (f *Fleet) Report() Report {
	s := &f.seen
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.report
	out.Devices, out.Rounds = f.cfg.Devices, []Round{}
	took := slices.Sorted(slices.Values(s.handshakes))
	if n := len(took); n > 0 {
		out.HandshakeMedian, out.HandshakeP99 = took[n/2], took[n*99/100]
	}
	for _, r := range s.rounds {
		one := r.Round
		one.Seconds = r.last.Sub(r.began).Seconds()
		out.Rounds = append(out.Rounds, one)
	}
	slices.SortFunc(out.Rounds, func(a, b Round) int { return int(a.Round) - int(b.Round) })
	return out
}
