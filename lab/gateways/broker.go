// Package gateways runs what coordinators and gateways need between them, for tests and long runs
// of both: a NATS server under the configuration that operators are given.
package gateways

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/lab/natsserver"
)

// Broker is a NATS server in this process, as deploy/nats/nats.conf has it: with TLS, and users
// who may do what they must.
type Broker struct {
	dir, address string
	passwords    map[string]string
	server       *natsserver.Server
}

// Start begins one that keeps its files in dir; config is the path of nats.conf.
func Start(dir, config string) (*Broker, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &Broker{dir: dir, address: l.Addr().String(), passwords: map[string]string{}}
	text, err := os.ReadFile(config)
	if err = errors.Join(err, l.Close(), b.certificate()); err != nil {
		return nil, err
	}
	own := strings.NewReplacer("0.0.0.0:4222", b.address, "/etc/nats/", filepath.ToSlash(dir)+"/").Replace(string(text))
	for _, name := range []string{"owner", "one", "two", "three"} {
		b.passwords[name] = rand.Text()
		own = strings.ReplaceAll(own, "$"+strings.ToUpper(name)+"_PASSWORD", b.passwords[name])
	}
	if err := os.WriteFile(filepath.Join(dir, "nats.conf"), []byte(own), 0o600); err != nil {
		return nil, err
	}
	return b, b.start()
}

func (b *Broker) start() error {
	o, err := server.ProcessConfigFile(filepath.Join(b.dir, "nats.conf"))
	if err != nil {
		return fmt.Errorf("gateways: %w", err)
	}
	o.NoSigs, o.NoLog = true, true
	b.server, err = natsserver.Run(o, nil)
	return err
}

// Access is how the owner, or a gateway, reaches it.
func (b *Broker) Access(name string) relay.Access {
	u := url.URL{Scheme: "tls", User: url.UserPassword(name, b.passwords[name]), Host: b.address}
	return relay.Access{URL: u.String(), Access: natsaccess.Access{CA: filepath.Join(b.dir, "tls.crt")}}
}

// Stop ends it; Restart starts it again at the same address.
func (b *Broker) Stop() { b.server.Close() }

func (b *Broker) Restart() error {
	b.Stop()
	return b.start()
}

// certificate makes one for this machine, and its own authority.
func (b *Broker) certificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(b.dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
		os.WriteFile(filepath.Join(b.dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}
