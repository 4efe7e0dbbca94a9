package gateways

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// A server that does not know its users yet, more than once, is asked again.
const patience = 15 * time.Second

func TestRefusedIsNotForever(t *testing.T) {
	b := begin(t)
	nc := b.as(t, "owner")
	path := filepath.Join(b.dir, "nats.conf")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan struct{}, 100)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrAuthorization) {
			refused <- struct{}{}
		}
	})
	for _, config := range []string{strings.ReplaceAll(string(good), b.passwords["owner"], "another"), string(good)} {
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.Restart(); err != nil {
			t.Fatal(err)
		}
		for i := 0; config != string(good) && i < 2; i++ {
			select {
			case <-refused:
			case <-time.After(patience):
				t.Fatal("it was not refused")
			}
		}
	}
	for end := time.Now().Add(patience); !nc.IsConnected(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is %v: %v", nc.Status(), nc.LastError())
		}
	}
}
