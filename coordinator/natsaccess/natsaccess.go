// Package natsaccess configures how programs authenticate to NATS servers, and verify them: what
// gateways, owners and a simulation's workers have in common.
//
//	var access natsaccess.Access
//	access.Flags(cmd.Flags())
//	options, err := access.Options() // for nats.Connect
package natsaccess

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
)

// Access holds the credentials of a client. Each path is empty if it is not used.
type Access struct {
	Credentials string // a JWT and its key (.creds)
	CA          string // the authorities of the servers' certificates (PEM); empty: the system's
	Cert, Key   string // a client's certificate (PEM), and its key

	Pin    string // of the servers' certificate, its SHA-256 in hex; empty: an authority says whether it is good
	Within Server // one in this process, to be reached without a network; nil: there is none
}

// Flags adds the flags that set it.
func (a *Access) Flags(fl *pflag.FlagSet) {
	fl.StringVar(&a.Credentials, "nats-creds", "", "file with NATS credentials (.creds)")
	fl.StringVar(&a.CA, "nats-ca", "", "file with the authorities (PEM) of the NATS servers' certificates (default: the system's)")
	fl.StringVar(&a.Cert, "nats-cert", "", "file with a client's certificate (PEM) for NATS")
	fl.StringVar(&a.Key, "nats-key", "", "file with the key of --nats-cert (PEM)")
	fl.StringVar(&a.Pin, "nats-pin", "", "SHA-256 (hex) of the NATS server's certificate, whatever authority signed it: what starling serve --nats-listen writes for a gateway")
}

// Options returns the NATS options for a connection.
func (a Access) Options() (options []nats.Option, err error) {
	if (a.Cert == "") != (a.Key == "") {
		return nil, errors.New("a client certificate needs its key, and a key its certificate")
	}
	if a.Pin != "" && a.CA != "" {
		return nil, errors.New("a pin and an authority are two ways to know a server: give one")
	}
	if a.Credentials != "" {
		options = append(options, nats.UserCredentials(a.Credentials))
	}
	if a.CA != "" {
		options = append(options, nats.RootCAs(a.CA))
	}
	if a.Cert != "" {
		options = append(options, nats.ClientCert(a.Cert, a.Key))
	}
	if a.Pin != "" {
		pin, err := hex.DecodeString(a.Pin)
		if err != nil || len(pin) != sha256.Size {
			return nil, fmt.Errorf("the pin of NATS' certificate is %.80q, want %d hex digits", a.Pin, 2*sha256.Size)
		}
		// The pin stands in for names, dates and authorities: of a certificate whose hash is known they say nothing.
		options = append(options, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true,
			VerifyConnection: func(s tls.ConnectionState) error {
				if len(s.PeerCertificates) == 0 || sha256.Sum256(s.PeerCertificates[0].Raw) != [32]byte(pin) {
					return errPin
				}
				return nil
			}}))
	}
	if a.Within != nil {
		options = append(options, nats.InProcessServer(a.Within))
	}
	return options, nil
}

var errPin = errors.New("its certificate does not match the pin: it was renewed, or a third party intercepts the connection")
