package gateways

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// heardOwner hears which owner is there.
func heardOwner(t *testing.T, nc *nats.Conn) string {
	t.Helper()
	sub, err := nc.SubscribeSync("starling.owner")
	if err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsg(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return string(m.Data[1:])
}

// TestHostileGateway: one that has its credentials and keeps to no protocol takes nothing from
// the devices of another one.
func TestHostileGateway(t *testing.T) {
	b := begin(t)
	owned(t, b, always, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	at := gateway(t, b, "two")
	nc := b.as(t, "one")
	owner := heardOwner(t, nc)
	message := func(kind byte, number uint64, payload []byte) []byte {
		return append(binary.BigEndian.AppendUint64([]byte{kind}, number), payload...)
	}
	open := func(link string) {
		t.Helper()
		answers, err := nc.SubscribeSync("starling.down.one." + link)
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Publish("starling.open.one."+owner, []byte(link)); err != nil {
			t.Fatal(err)
		}
		if _, err := answers.NextMsg(10 * time.Second); err != nil {
			t.Fatalf("link %s: %v", link, err)
		}
	}
	send := func(link string, m []byte) {
		t.Helper()
		if err := nc.Publish("starling.up.one."+owner+"."+link, m); err != nil {
			t.Fatal(err)
		}
	}
	framed := func(kind byte, stream uint32, payload []byte) []byte {
		h := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{kind}, stream), uint32(len(payload)))
		return append(h, payload...)
	}
	const open1, data, credit, here = 1, 2, 3, "192.0.2.1:443"
	const frames = 4 // kind of message
	for name, lie := range map[string]func(link string){
		"garbage":   func(link string) { send(link, []byte("garbage")); send(link, nil) },
		"a hole":    func(link string) { send(link, message(frames, 7, framed(open1, 1, []byte(here)))) },
		"no frames": func(link string) { send(link, message(frames, 0, make([]byte, 1<<16))) },
		"a frame of 4 GiB": func(link string) {
			send(link, message(frames, 0, append(framed(open1, 1, []byte(here)), data, 0, 0, 0, 1, 255, 255, 255, 255)))
		},
		"streams that say nothing": func(link string) {
			var all []byte
			for i := range uint32(2000) {
				all = append(all, framed(open1, i+1, []byte(here))...)
			}
			send(link, message(frames, 0, all))
		},
		"a device of nowhere": func(link string) {
			send(link, message(frames, 0, framed(open1, 1, []byte("somewhere"))))
		},
		"credit for nothing": func(link string) {
			send(link, message(frames, 0, append(framed(open1, 1, []byte(here)), framed(credit, 1, []byte{0, 1, 0, 0})...)))
		},
		"a flood": func(link string) {
			send(link, message(frames, 0, framed(open1, 1, []byte(here))))
			part := framed(data, 1, make([]byte, 1<<16-9))
			for i := range 400 {
				send(link, message(frames, 22+uint64(i)<<16, part))
			}
		},
		"many links": func(string) {
			for i := range 200 {
				_ = nc.Publish("starling.open.one."+owner, fmt.Appendf(nil, "many%d", i))
			}
			_ = nc.Publish("starling.open.one."+owner, []byte("a.name>*"))
			_ = nc.Publish("starling.open.one."+owner, make([]byte, 1<<16))
		},
	} {
		t.Run(name, func(t *testing.T) {
			link := strings.ReplaceAll(name, " ", "-")
			open(link)
			lie(link)
			for range 3 {
				if body, err := get(t, device(t), at); err != nil || body != "here" {
					t.Fatalf("another gateway's device: %q, %v", body, err)
				}
			}
		})
	}
}

// TestHostileByteChanged: bytes that are changed on their way end the connection that they are of, and
// are read by nobody.
func TestHostileByteChanged(t *testing.T) {
	b := begin(t)
	said := make(chan string, 64)
	owned(t, b, always, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			said <- string(body)
		}
		fmt.Fprint(w, "an answer")
	}))
	honest := gateway(t, b, "one")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	turned := make(chan int64, 1) // the byte of the next connection to the owner that is changed
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", honest)
			if err != nil {
				conn.Close()
				return
			}
			go func() { _, _ = io.Copy(conn, to); conn.Close() }()
			go func() {
				defer to.Close()
				at, in := <-turned, bufio.NewReader(conn)
				for i := int64(0); ; i++ {
					c, err := in.ReadByte()
					if err != nil {
						return
					}
					if i == at {
						c ^= 1
					}
					if _, err := to.Write([]byte{c}); err != nil {
						return
					}
				}
			}()
		}
	}()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	altered := 0
	for at := int64(1_000); at < 3_000; at += 400 { // within the handshake's end and the request
		turned <- at
		req, err := http.NewRequestWithContext(watchdog.Context(t), http.MethodPost, "https://"+l.Addr().String(), strings.NewReader(strings.Repeat("update", 500)))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := c.Do(req); err != nil {
			altered++
		} else {
			resp.Body.Close()
		}
	}
	if altered == 0 {
		t.Error("no connection ended")
	}
	for {
		select {
		case body := <-said:
			if body != strings.Repeat("update", 500) {
				t.Errorf("the owner read %q", body)
			}
			continue
		default:
		}
		break
	}
}
