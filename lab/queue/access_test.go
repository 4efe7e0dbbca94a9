package queue_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/starling-fl/starling/lab/queue"
)

// cluster is a server of the user's own, as a cluster is to us.
func cluster(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	o.JetStream, o.StoreDir = true, t.TempDir()
	s, err := server.NewServer(o)
	ok(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server was not ready within a minute")
	}
	return s
}

// signed issues a certificate by an authority, or the authority's own where there is none.
func signed(t testing.TB, name string, by *tls.Certificate) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, any(key)
	if by == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	ok(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ok(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	certFile, keyFile = filepath.Join(t.TempDir(), name+".pem"), filepath.Join(t.TempDir(), name+".key")
	ok(t, os.WriteFile(certFile, certPEM, 0o600))
	ok(t, os.WriteFile(keyFile, keyPEM, 0o600))
	cert, err = tls.X509KeyPair(certPEM, keyPEM)
	ok(t, err)
	cert.Leaf, err = x509.ParseCertificate(der)
	ok(t, err)
	return cert, certFile, keyFile
}

// over plays the job over a cluster, its worker on a connection of its own, and holds the
// result against one process.
func over(t testing.TB, url string, a queue.Access) {
	t.Helper()
	cfg := config(t)
	cfg.Job.Rounds = 1
	want := play(t, cfg)
	var ends [2]*queue.Broker
	var err error
	ends[1], err = queue.Connect(t.Context(), url, a)
	ok(t, err)
	t.Cleanup(func() { ok(t, ends[1].Close()) })
	ends[0], err = queue.ConnectWorker(t.Context(), ends[1].URL, a)
	ok(t, err)
	t.Cleanup(func() { ok(t, ends[0].Close()) })
	work(t, ends[0], &queue.Worker{Version: "v", Engine: "e", Parallel: 1, AckWait: time.Second})
	cfg.Collect = queue.NewReducer(ends[1], "v", "e", nil).Collect
	if got := play(t, cfg); got != want {
		t.Errorf("over the cluster:\n%s\nin one process:\n%s", got, want)
	}
}

// A cluster that asks for TLS and for client certificates is reached with both, and
// neither by nor as a stranger.
func TestTLS(t *testing.T) {
	authority, ca, _ := signed(t, "authority", nil)
	own, _, _ := signed(t, "server", &authority)
	_, cert, key := signed(t, "worker", &authority)
	other, otherCA, _ := signed(t, "another", nil)
	_, strange, strangeKey := signed(t, "stranger", &other)
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	s := cluster(t, &server.Options{TLS: true, TLSVerify: true, TLSTimeout: 60, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}})
	over(t, s.ClientURL(), queue.Access{CA: ca, Cert: cert, Key: key})
	for what, a := range map[string]queue.Access{
		"an authority that did not sign the server": {CA: otherCA, Cert: cert, Key: key},
		"no certificate":           {CA: ca},
		"a stranger's":             {CA: ca, Cert: strange, Key: strangeKey},
		"a key that is not a file": {CA: ca, Cert: cert, Key: filepath.Join(t.TempDir(), "none")},
		"authorities in no file":   {CA: filepath.Join(t.TempDir(), "none"), Cert: cert, Key: key},
	} {
		if b, err := queue.Connect(t.Context(), s.ClientURL(), a); err == nil {
			ok(t, b.Close())
			t.Errorf("%s: connected", what)
		}
	}
}

// A decentralized account is entered with its user's credentials file, and with no other.
func TestCredentials(t *testing.T) {
	operator, err := nkeys.CreateOperator()
	ok(t, err)
	public := func(k nkeys.KeyPair) string {
		p, err := k.PublicKey()
		ok(t, err)
		return p
	}
	resolver := &server.MemAccResolver{}
	account := func(jetstream bool) nkeys.KeyPair {
		k, err := nkeys.CreateAccount()
		ok(t, err)
		claims := jwt.NewAccountClaims(public(k))
		if jetstream {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
		}
		token, err := claims.Encode(operator)
		ok(t, err)
		ok(t, resolver.Store(public(k), token))
		return k
	}
	credentials := func(account nkeys.KeyPair) string {
		user, err := nkeys.CreateUser()
		ok(t, err)
		token, err := jwt.NewUserClaims(public(user)).Encode(account)
		ok(t, err)
		seed, err := user.Seed()
		ok(t, err)
		text, err := jwt.FormatUserConfig(token, seed)
		ok(t, err)
		path := filepath.Join(t.TempDir(), "user.creds")
		ok(t, os.WriteFile(path, text, 0o600))
		return path
	}
	ours, system := account(true), account(false)
	claims := jwt.NewOperatorClaims(public(operator))
	claims.SystemAccount = public(system)
	s := cluster(t, &server.Options{
		TrustedOperators: []*jwt.OperatorClaims{claims}, AccountResolver: resolver, SystemAccount: public(system),
	})
	over(t, s.ClientURL(), queue.Access{Credentials: credentials(ours)})
	stranger, err := nkeys.CreateAccount()
	ok(t, err)
	for what, a := range map[string]queue.Access{
		"nothing":               {},
		"a stranger's account":  {Credentials: credentials(stranger)},
		"a file that is no one": {Credentials: filepath.Join(t.TempDir(), "none")},
	} {
		if b, err := queue.Connect(t.Context(), s.ClientURL(), a); err == nil {
			ok(t, b.Close())
			t.Errorf("%s: connected", what)
		}
	}
}
