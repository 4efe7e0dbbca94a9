//go:build unix

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/lab/loadtest"
)

// TestEmbeddedNATS: one server, which is the NATS server of two gateways, and no third program.
// Rounds go on when a gateway is killed and while somebody who has taken over the other one's
// credential tries what it may not, and the server's restart lets the same gateways in.
func TestEmbeddedNATS(t *testing.T) {
	t.Parallel()
	const devices, rounds = 40, 5
	s := newJob(t, devices, rounds)
	names := []string{"one", "two"}
	at, listens, admin := []string{freePort(t), freePort(t)}, freePort(t), freePort(t)
	owner := func() *process {
		return start(t, s.binary, "serve", "--dir", s.folder(0), "--nats-listen", listens, "--gateway", "one,two", "--tls", "--url", "https://"+at[0],
			"--admin", admin, "--log", "text")
	}
	gateway := func(i int) *process {
		p := start(t, s.binary, "gateway", "--config", filepath.Join(s.folder(0), "gateways", names[i]+".yaml"), "--listen", at[i], "--log", "text")
		p.await(t, "linked to the owner")
		return p
	}
	s.put()
	first := owner()
	token := s.token(first)
	gateways := []*process{gateway(0), gateway(1)}

	_, ended := play(t, loadtest.Config{Devices: devices, Drop: 0.05, By: at}, token)
	s.more("the first round")
	if err := gateways[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gateways[0].end()
	gateways[0] = gateway(0)
	s.more("a round after the death of a gateway")
	tryGateway(t, filepath.Join(s.folder(0), "gateways", "one.yaml"))
	s.more("a round after what a hostile gateway did")
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.end()
	again := owner()
	again.await(t, `msg="job over".*state=finished`)
	watchdog.Wait(t, "the devices' end", ended)
	settled(t, s.binary, s.folder(0), s.charged(), rounds, 1)
	for _, p := range append(gateways, first, again) {
		if strings.Contains(p.said(), "tls://") {
			t.Error("a gateway's password is in the log")
		}
	}
}

// tryGateway does with a gateway's credential what it is not for.
func tryGateway(t *testing.T, settings string) {
	t.Helper()
	file, err := os.Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var given struct {
		Name string `yaml:"name"`
		NATS string `yaml:"nats"`
		Pin  string `yaml:"nats-pin"`
	}
	if err := strict.Read(file, &given); err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read a gateway's password: %v, %v", info.Mode(), err)
	}
	anybody := nats.Secure(&tls.Config{InsecureSkipVerify: true})
	bare := "tls://" + given.NATS[strings.Index(given.NATS, "@")+1:]
	for why, to := range map[string]string{"nobody": bare, "a wrong password": strings.Replace(bare, "//", "//one:no@", 1), "the owner": strings.Replace(bare, "//", "//owner:@", 1)} {
		if nc, err := nats.Connect(to, anybody); !errors.Is(err, nats.ErrAuthorization) {
			nc.Close()
			t.Errorf("%s: %v", why, err)
		}
	}
	if nc, err := nats.Connect(strings.Replace(bare, "tls://", "nats://", 1), nats.UserInfo("one", "x"), nats.TLSHandshakeFirst()); err == nil {
		nc.Close()
		t.Error("another protocol got in")
	}
	wrong := relay.Access{URL: given.NATS, Access: natsaccess.Access{Pin: strings.Repeat("0", 64)}}
	if nc, err := relay.Connect(wrong, "one", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "a third party intercepts") {
		nc.Close()
		t.Errorf("another certificate: %v", err)
	}
	refused := make(chan error, 16)
	nc, err := nats.Connect(given.NATS, anybody, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	tries := 0
	for _, subject := range []string{"starling.down.two.>", "starling.down.*.x", "starling.open.>", "starling.up.one.>", "starling.>", ">", "$SYS.>", "_INBOX.>"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
		tries++
	}
	for _, subject := range []string{"starling.owner", "starling.open.two.x", "starling.up.two.x.y", "starling.down.one.x", "$SYS.REQ.SERVER.PING", "$JS.API.INFO"} {
		if err := nc.Publish(subject, []byte("+x")); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
		tries++
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for range tries {
		watchdog.Wait(t, "a refusal", func() {
			if err := <-refused; !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("refused by %v", err)
			}
		})
	}
	if most := nc.MaxPayload(); most != relay.MostMessage {
		t.Errorf("messages may have %d bytes", most)
	}
	if said := shout(t, given.NATS, "PING\r\n"); !strings.Contains(said, "PONG") {
		t.Fatalf("a client of our own: %q", said)
	}
	for why, what := range map[string]string{"a payload of a gigabyte": "PUB starling.up.one.x.y 1000000000\r\n", "a subject of a megabyte": "PUB " + strings.Repeat("x", 1<<20)} {
		if said := shout(t, given.NATS, what+"\r\nPING\r\n"); strings.Contains(said, "PONG") {
			t.Errorf("%s: %q", why, said)
		}
	}
}

// shout says one thing to a NATS server, by a client of our own that minds no limit, and returns what it answers.
func shout(t *testing.T, address, what string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	info := make([]byte, 1)
	for info[0] != '\n' { // its greeting comes before TLS
		if _, err := plain.Read(info); err != nil {
			t.Fatal(err)
		}
	}
	conn := tls.Client(plain, &tls.Config{InsecureSkipVerify: true})
	password, _ := u.User.Password()
	_, err = fmt.Fprintf(conn, "CONNECT {\"user\":%q,\"pass\":%q,\"tls_required\":true}\r\n%s", u.User.Username(), password, what)
	if err != nil {
		return err.Error() // it had hung up before it was told all
	}
	var said strings.Builder
	for !strings.Contains(said.String(), "PONG") {
		b := make([]byte, 1<<10)
		n, err := conn.Read(b)
		said.Write(b[:n])
		if err != nil { // it hung up
			break
		}
	}
	return said.String()
}
