package edge

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/known"
)

// A Source returns the device's examples once the job's labels are known. It must refuse examples
// whose label the job does not have.
type Source func(labels []string) (*dataset.Set, error)

// Examples is the Source of a set that is in memory.
func Examples(set *dataset.Set) Source { return set.Relabel }

// Config says how a device takes part. Zero values mean the stated default.
type Config struct {
	Token    string             // the join token, as the coordinator prints it
	Identity ed25519.PrivateKey // the device's enduring identity; see LoadIdentity
	Data     Source

	Trainer  Trainer        // default: NewProgramTrainer(1), closed with the client
	Progress func(Event)    // called for every event, in order, one at a time; must not block long
	Trained  func(*Trained) // called once with the model, where the job ends with one on offer; nil: it is not fetched
	Log      Logger         // default: discard
	// Roster receives, for each round, a proof of this device's shard members; nil: it is not kept.
	Roster func(round uint64, task [32]byte, proof *RosterProof)
	Agent  string // what the operator's log calls this program; default "starling"

	Policy     *Policy  // what the owner lets a job ask for; default PolicyFor the token and TrustLocal
	TrustLocal bool     // the owner says that the coordinator is their own, on this machine
	Account    *Account // what the data has given; default: one in memory
	// Announced sees a job as its coordinator announces it, before the device enrols; its error refuses the job. nil:
	// nothing looks.
	Announced func(task [32]byte, announced []byte) error

	Remake           Remaker    // makes programs again; nil: those of the coordinator are run unless the policy names others
	Leaks            Leaker     // tries, once a job, what one update shows; nil: it is not tried
	AllowPlain       bool       // join a coordinator on another machine without TLS
	MaxBlob          uint64     // bytes, largest blob to fetch; default 1 GiB
	Found            *Discovery // of a job that its owner did not name: what such a job may be; nil: the owner named it
	AcceptNotPrivate bool       // join a job that says of itself that it is not private
	CacheDir         string     // where base and programs are kept between runs; empty: memory only

	Known known.List  // published bases in addition to known.Default's
	Base  *model.Base // the owner's own copy of the base; nil: the coordinator's, checked by its hash
	// Fetch gets the base from where it is published (a hub or its mirror) instead of from the
	// coordinator. It is called only for a base that the policy allows, and its result is checked
	// against the job's hash. nil: the coordinator sends the base.
	Fetch func(ctx context.Context, from Published) (*model.Base, error)

	BackoffMin time.Duration // first wait before reconnecting; default 500ms
	BackoffMax time.Duration // longest; default 1 min
	Handshake  time.Duration // longest wait for the coordinator's answer while joining; default 15s

	// Dial opens a connection; default: a WebSocket with the token's pin.
	Dial func(ctx context.Context, token string) (Conn, error)
	// HTTP fetches blobs; default: a client with the token's pin. Not used in a
	// browser.
	HTTP *HTTPClient
	// Seed, if not empty, replaces every secret source of randomness. Only for reproducible
	// demonstrations: nothing is private then.
	Seed []byte
}

// Logger is the subset of *slog.Logger that a device uses. A browser's build leaves log/slog out,
// which would be a fortieth of its size.
type Logger interface {
	Debug(msg string, args ...any)
	Info(msg string, args ...any)
	Warn(msg string, args ...any)
}

// discard is the default Logger.
type discard struct{}

func (discard) Debug(string, ...any) {}
func (discard) Info(string, ...any)  {}
func (discard) Warn(string, ...any)  {}

// ErrConfig is a configuration that cannot work.
var ErrConfig = errors.New("edge: bad configuration")

func (c *Config) validate() (wire.Token, error) {
	t, err := c.reach()
	if err != nil {
		return t, err
	}
	switch {
	case len(c.Identity) != ed25519.PrivateKeySize:
		return t, fmt.Errorf("%w: identity: %d bytes, %d expected", ErrConfig, len(c.Identity), ed25519.PrivateKeySize)
	case c.Data == nil:
		return t, fmt.Errorf("%w: no data", ErrConfig)
	case c.BackoffMin < 0 || c.BackoffMax < 0 || c.Handshake < 0:
		return t, fmt.Errorf("%w: durations must not be negative", ErrConfig)
	case len(c.Agent) > wire.MaxName:
		return t, fmt.Errorf("%w: agent is longer than %d bytes", ErrConfig, wire.MaxName)
	}
	orElse(&c.Log, Logger(discard{}))
	orElse(&c.Agent, "starling "+host)
	if c.Account == nil {
		if c.Account, err = NewAccount(nil, nil); err != nil {
			return t, err
		}
	}
	orElse(&c.BackoffMin, 500*time.Millisecond)
	orElse(&c.BackoffMax, time.Minute)
	if c.BackoffMax < c.BackoffMin {
		return t, fmt.Errorf("%w: backoff_max %v is below backoff_min %v", ErrConfig, c.BackoffMax, c.BackoffMin)
	}
	return t, nil
}

// reach validates what is needed to contact the coordinator, and the limits on that.
func (c *Config) reach() (wire.Token, error) {
	t, err := wire.ParseToken(c.Token)
	if err != nil {
		return t, fmt.Errorf("%w: token: %w", ErrConfig, err)
	}
	if strings.HasPrefix(t.URL, "http:") && !loopback(t.URL) && !c.AllowPlain {
		return t, fmt.Errorf("%w: %s is another machine, and http is not encrypted: anyone on the way could send another program (--allow-plain-http)", ErrConfig, t.URL)
	}
	if c.Policy == nil {
		p, err := PolicyFor(t.URL, c.TrustLocal)
		if err != nil {
			return t, err
		}
		c.Policy = &p
	}
	orElse(&c.MaxBlob, 1<<30)
	orElse(&c.Handshake, 15*time.Second)
	return t, c.Policy.Validate()
}

func orElse[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// Protocol names the version of the protocol, including the fields of its messages. A page whose
// Protocol differs from its coordinator's was built from other sources.
func Protocol() string { return wire.Protocol() }

// JoinToken returns the join token that where is: a token as 'starling serve' prints it, or the address of a
// coordinator that asks for no enrolment secret, http://host:port or https://host:port, with or without a path.
func JoinToken(where string) (string, error) {
	if strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://") {
		t := wire.Token{URL: strings.TrimRight(where, "/")}
		return t.String(), t.Validate()
	}
	t, err := wire.ParseToken(where)
	if err != nil {
		return "", fmt.Errorf("%w; want the token that 'starling serve' prints, or an http(s) URL", err)
	}
	return t.String(), nil
}
