// Package natsaccess is how programs show NATS servers who they are, and know the servers by:
// what gateways, owners and a simulation's workers have in common.
package natsaccess

import (
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
)

// Access is files' paths, each empty where there is none.
type Access struct {
	Credentials string // a JWT and its key (.creds)
	CA          string // the authorities of the servers' certificates (PEM); empty: the system's
	Cert, Key   string // a client's certificate (PEM), and its key
}

// Flags adds the flags that fill it.
func (a *Access) Flags(fl *pflag.FlagSet) {
	fl.StringVar(&a.Credentials, "nats-creds", "", "file with NATS credentials (.creds)")
	fl.StringVar(&a.CA, "nats-ca", "", "file with the authorities (PEM) of the NATS servers' certificates (default: the system's)")
	fl.StringVar(&a.Cert, "nats-cert", "", "file with a client's certificate (PEM) for NATS")
	fl.StringVar(&a.Key, "nats-key", "", "file with the key of --nats-cert (PEM)")
}

// Options are those that a connection needs for it.
func (a Access) Options() (options []nats.Option, err error) {
	if (a.Cert == "") != (a.Key == "") {
		return nil, errors.New("a client certificate needs its key, and a key its certificate")
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
	return options, nil
}
