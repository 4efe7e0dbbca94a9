package natsserver

import (
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/coordinator/relay"
)

// What serve lets gateways and itself do is what the file that operators are given does.
func TestAsTheFileHasIt(t *testing.T) {
	for _, name := range []string{"OWNER", "ONE", "TWO", "THREE"} {
		t.Setenv(name+"_PASSWORD", "p")
	}
	text := "../../deploy/nats/nats.conf"
	o := &server.Options{}
	err := o.ProcessConfigFile(text)
	if err != nil && !strings.Contains(err.Error(), "/etc/nats/tls.crt") { // which is the operator's
		t.Fatal(err)
	}
	known := map[string]*server.User{}
	for _, u := range o.Users {
		known[u.Username] = u
	}
	one, err := relay.GatewayUser("one", "p")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []natsaccess.User{relay.OwnerUser("p"), one} {
		got := known[u.Name]
		if got == nil || !reflect.DeepEqual(got.Permissions.Publish.Allow, u.Publish) || !reflect.DeepEqual(got.Permissions.Subscribe.Allow, u.Subscribe) {
			t.Errorf("%s: the file has %+v, want %+v", u.Name, got, u)
		}
	}
}

func TestRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	someone := []natsaccess.User{{Name: "a", Password: "b"}}
	for want, s := range map[string]natsaccess.Serving{
		"must have users":    {Listen: "127.0.0.1:0"},
		"0..65535":           {Listen: "127.0.0.1:nats", Users: someone},
		"missing port":       {Listen: "127.0.0.1", Users: someone},
		"address already in": {Listen: l.Addr().String(), Users: someone},
	} {
		if _, err := Start(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
