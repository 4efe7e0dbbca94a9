package gateways

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/internal/protocol/cbor"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/secagg"
)

// masksOf are a shard's of 16 devices, of which two dropped.
func masksOf(t *testing.T, dim int) *secagg.Masks {
	t.Helper()
	random := func(n int) []byte {
		b := make([]byte, n)
		rand.Read(b)
		return b
	}
	b := cbor.AppendUint(cbor.AppendUint(cbor.AppendUint(cbor.AppendArray(nil, 9), 1), uint64(dim)), 21)
	for _, field := range [][]byte{random(32), {0xfb, 0xfe}, random(14 * 16), {0x04, 0x01}, random(2 * 32), random(14 * 32)} {
		b = cbor.AppendBytes(b, field)
	}
	m := new(secagg.Masks)
	if err := m.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	return m
}

func lend(t *testing.T, nc *nats.Conn) (end func()) {
	t.Helper()
	end, err := relay.Lend(nc, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(end)
	t.Cleanup(end)
	return end
}

// TestLend: masks are added up by whoever lends, in as many messages as it takes, until nobody
// does; then at once there is none.
func TestLend(t *testing.T) {
	b := begin(t)
	first, second := b.as(t, "owner"), b.as(t, "owner")
	ends := []func(){lend(t, first), lend(t, second)}
	owner := relay.Borrow(b.as(t, "owner"))
	var all sync.WaitGroup
	for k := range 24 {
		m := masksOf(t, 1+k*5000) // up to 301,877 bytes
		all.Go(func() {
			got, err := owner.Sum(watchdog.Context(t), m)
			if err != nil || !slices.Equal(got, m.Sum()) {
				t.Errorf("%d bytes: %v", m.PackedSize(), err)
			}
		})
	}
	watchdog.Wait(t, "the sums", all.Wait)
	for _, end := range ends {
		end()
	}
	for _, nc := range []*nats.Conn{first, second} {
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := owner.Sum(watchdog.Context(t), masksOf(t, 10)); err == nil {
		t.Error("nobody lends, and there is a sum")
	}
}

// TestHostileLender: what it answers, the owner gets an error or that many symbols, and where
// it answers nothing the owner waits as long as it likes and asks no more for a while.
func TestHostileLender(t *testing.T) {
	b := begin(t)
	m := masksOf(t, 1000)
	packed := m.Pack(m.Sum())
	at := func(n byte, b []byte) []byte { return append([]byte{0, 0, 0, n}, b...) }
	nc := b.as(t, "owner")
	for name, c := range map[string]struct {
		parts [][]byte
		good  bool
	}{
		"as it should be":    {[][]byte{at(0, packed[:200]), at(200, packed[200:])}, true},
		"refused":            {[][]byte{nil}, false},
		"a hole":             {[][]byte{at(0, packed[:200]), at(201, packed[201:])}, false},
		"too much":           {[][]byte{at(0, append(slices.Clone(packed), 0))}, false},
		"nothing but a head": {[][]byte{at(0, nil)}, false},
		"no head":            {[][]byte{{0}}, false},
	} {
		sub, err := nc.Subscribe("starling.masks", func(q *nats.Msg) {
			for _, p := range c.parts {
				_ = q.Respond(p)
			}
		})
		if err = errors.Join(err, nc.Flush()); err != nil {
			t.Fatal(err)
		}
		sum, err := relay.Borrow(b.as(t, "owner")).Sum(watchdog.Context(t), m)
		if (err == nil) != c.good || err == nil && len(sum) != 1000 {
			t.Errorf("%s: %d symbols, %v", name, len(sum), err)
		}
		if err := errors.Join(sub.Unsubscribe(), nc.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	var asked atomic.Int32
	heard := make(chan struct{}, 2)
	if _, err := nc.Subscribe("starling.masks", func(*nats.Msg) { asked.Add(1); heard <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	owner := relay.Borrow(b.as(t, "owner"))
	ctx, cancel := context.WithTimeout(watchdog.Context(t), time.Minute)
	defer cancel()
	go func() { <-heard; cancel() }()
	if _, err := owner.Sum(ctx, m); !errors.Is(err, context.Canceled) {
		t.Errorf("a lender that is silent: %v", err)
	}
	if _, err := owner.Sum(watchdog.Context(t), m); err == nil || asked.Load() != 1 {
		t.Errorf("%v: asked %d times", err, asked.Load())
	}
}

// TestHostileQuestion: a lender answers nothing but masks, and nobody but the place for sums.
func TestHostileQuestion(t *testing.T) {
	b := begin(t)
	lend(t, b.as(t, "owner"))
	nc := b.as(t, "owner")
	sums, err := nc.SubscribeSync("starling.sums.>")
	if err != nil {
		t.Fatal(err)
	}
	question, _ := masksOf(t, 10).AppendBinary(nil)
	for _, q := range []struct {
		to   string
		data []byte
	}{{"starling.down.one.x", question}, {"starling.sums.a.b", question}, {"starling.sums.refused", question[1:]}, {"starling.sums.good", question}} {
		if err := nc.PublishRequest("starling.masks", q.to, q.data); err != nil {
			t.Fatal(err)
		}
	}
	heard := map[string]int{}
	for range 2 {
		m, err := sums.NextMsgWithContext(watchdog.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		heard[m.Subject] = len(m.Data)
	}
	if n, is := heard["starling.sums.refused"]; !is || n != 0 || heard["starling.sums.good"] != 4+(10*21+7)/8 {
		t.Errorf("heard %v", heard)
	}
}

// TestSecretsInTheClear: where others may read what is said to NATS no masks are sent or taken.
func TestSecretsInTheClear(t *testing.T) {
	s, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Shutdown)
	nc, err := nats.Connect("", nats.InProcessServer(s)) // neither TLS nor this machine's address
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if _, err := relay.Lend(nc, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("masks are taken")
	}
	sub, err := nc.SubscribeSync("starling.masks")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := relay.Borrow(nc).Sum(watchdog.Context(t), masksOf(t, 10)); err == nil {
		t.Error("masks are added up")
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := sub.Pending(); n != 0 || err != nil {
		t.Errorf("%d questions were asked, %v", n, err)
	}
}
