package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/coordinator/natsaccess"
)

// ErrUnreachable is a NATS server that does not answer, or does not let this part in.
var ErrUnreachable = errors.New("relay: cannot reach NATS")

// Access holds the address and credentials with which a part of a deployment reaches NATS.
type Access struct {
	URL string // may hold a name and a password
	natsaccess.Access
}

const (
	// mute is how long an owner may be silent that says each beat that it is there.
	beat = time.Second
	mute = 4 * time.Second
	// opening bounds what one end waits for the other while NATS is reached, or a stream ends.
	opening = 10 * time.Second
	// leastPayload is what a server must let messages have.
	leastPayload = 4 << 10
)

// Connect reaches NATS, and goes on reconnecting once it was there.
func Connect(a Access, name string, log *slog.Logger) (*nats.Conn, error) {
	if a.URL == "" {
		return nil, errors.New("relay: no address of NATS is given")
	}
	options, err := a.Options()
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	options = append(options, nats.Name("starling "+name), nats.MaxReconnects(-1), nats.ReconnectWait(beat/2), nats.Timeout(opening),
		// A server may start before it knows who may do what, and a file of credentials is renewed.
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS", "error", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("NATS is not reached", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("NATS is reached again") }))
	nc, err := nats.Connect(a.URL, options...)
	if wrong := (*url.Error)(nil); errors.As(err, &wrong) { // which has the URL, with its password
		err = errors.New("its address is not a URL; in a password, all but letters and digits is written as in %2F")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if most := nc.MaxPayload(); most < leastPayload {
		nc.Close()
		return nil, fmt.Errorf("relay: max_payload of NATS is %d bytes, must be at least %d", most, leastPayload)
	}
	return nc, nil
}

// Subjects.
const (
	ownerSubject = "starling.owner"
	openPrefix   = "starling.open."
	upPrefix     = "starling.up."
	downPrefix   = "starling.down."
)

// OwnerUser is an owner as a NATS server knows it, GatewayUser the gateway of that name: doc.go
// says why these subjects.
func OwnerUser(password string) natsaccess.User {
	return natsaccess.User{Name: "owner", Password: password, Publish: []string{ownerSubject, downPrefix + ">"},
		Subscribe: []string{openPrefix + ">", upPrefix + ">"}}
}

func GatewayUser(name, password string) (natsaccess.User, error) {
	if !token.MatchString(name) || name == "owner" {
		return natsaccess.User{}, fmt.Errorf("relay: gateway %.80q: want up to 64 letters, digits, - and _, and not owner", name)
	}
	return natsaccess.User{Name: name, Password: password, Publish: []string{openPrefix + name + ".>", upPrefix + name + ".>"},
		Subscribe: []string{ownerSubject, downPrefix + name + ".>"}}, nil
}

// token is what may stand in a subject: a gateway's name, an owner, a link.
var token = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
