package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// acmeAuthority is Pebble, the server by which Let's Encrypt tests clients: it validates at
// 127.0.0.1, which all names lead to here.
type acmeAuthority struct {
	*httptest.Server
	roots  *x509.CertPool // whom those who dial check its certificates with
	orders atomic.Int32
}

// taking counts the orders that are taken: some are refused at first, since Pebble has clients try
// again with another nonce.
type taking struct {
	http.ResponseWriter
	orders *atomic.Int32
}

func (t taking) WriteHeader(status int) {
	if status == http.StatusCreated {
		t.orders.Add(1)
	}
	t.ResponseWriter.WriteHeader(status)
}

// newAuthority validates names by TLS-ALPN-01 at a port, and has its own certificate's authority
// in a file.
func newAuthority(t *testing.T, port int, file string) *acmeAuthority {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	names, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	resolver := &dns.Server{Listener: names, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(r)
		if q := r.Question[0]; q.Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(127, 0, 0, 1)}}
		}
		_ = w.WriteMsg(m) // who asked has gone
	})}
	served := make(chan error, 1)
	go func() { served <- resolver.ActivateAndServe() }()
	t.Cleanup(func() {
		names.Close()
		watchdog.Recv(t, "the resolver's end", served)
	})

	quiet := log.New(io.Discard, "", 0)
	store := db.NewMemoryStore()
	issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {}})
	front := wfe.New(quiet, store, va.New(quiet, 1, port, false, names.Addr().String(), store), issuer, nil, false, false, 1, 1)
	a := &acmeAuthority{roots: x509.NewCertPool()}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/order-plz" {
			w = taking{w, &a.orders}
		}
		front.Handler().ServeHTTP(w, r)
	}))
	a.Config.ErrorLog = quiet
	a.StartTLS()
	t.Cleanup(a.Close)
	if !a.roots.AppendCertsFromPEM(issuer.GetRootCert(0).PEM()) {
		t.Fatal("the authority has no certificate")
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestCertificateByACME: serve has an authority issue a certificate for its name when somebody dials
// by it, and for no other name. Started again it shows the same one from its folder, where the
// authority is gone.
func TestCertificateByACME(t *testing.T) {
	const host = "fl.example.org"
	dir, listen := t.TempDir(), freePort(t)
	_, text, err := net.SplitHostPort(listen)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	trusted := filepath.Join(dir, "authority.pem")
	authority := newAuthority(t, port, trusted)
	binary, state := build(t), filepath.Join(dir, "state")
	job := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(job, []byte(`
name: first
labels: [a, b]
rounds: 2
cohort: {population: 4, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func() *process {
		p := start(t, binary, "serve", "--job", job, "--dir", state, "--listen", listen, "--url", "https://"+host+":"+text, "--log", "text",
			"--acme", host, "--acme-directory", authority.URL+"/dir", "--acme-ca", trusted)
		p.await(t, "listening on")
		return p
	}
	shown := func(name string) (*x509.Certificate, error) {
		conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: name, RootCAs: authority.roots}}).DialContext(watchdog.Context(t), "tcp", listen)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
	}

	p := serve()
	first, err := shown(host)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.said())
	}
	if err := first.VerifyHostname(host); err != nil || authority.orders.Load() != 1 {
		t.Errorf("%v, after %d orders", err, authority.orders.Load())
	}
	if _, err := shown("other.example.org"); err == nil || authority.orders.Load() != 1 {
		t.Errorf("a name that is not ours: %v, after %d orders", err, authority.orders.Load())
	}
	for _, path := range []string{"acme", "acme/" + host, "acme/acme_account+key"} {
		if info, err := os.Stat(filepath.Join(state, path)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.end(); p.cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("%v\n%s", err, p.said())
	}

	authority.Close()
	p = serve()
	again, err := shown(host)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.said())
	}
	if !again.Equal(first) || authority.orders.Load() != 1 {
		t.Errorf("another certificate after a restart, %d orders", authority.orders.Load())
	}
}
