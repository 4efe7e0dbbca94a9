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

	"github.com/starling-fl/starling/internal/watchdog"
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
	head := func(kind byte, flags uint16, stream, length uint32) []byte { // of the multiplexer's frames
		h := []byte{0, kind}
		h = binary.BigEndian.AppendUint16(h, flags)
		h = binary.BigEndian.AppendUint32(h, stream)
		return binary.BigEndian.AppendUint32(h, length)
	}
	for name, lie := range map[string]func(link string){
		"garbage":   func(link string) { send(link, []byte("garbage")); send(link, nil) },
		"a hole":    func(link string) { send(link, message(1, 7, []byte("x"))) },
		"no frames": func(link string) { send(link, message(1, 0, make([]byte, 1<<16))) },
		"a frame of 4 GiB": func(link string) {
			send(link, message(1, 0, append(head(1, 1, 1, 0), head(0, 0, 1, 1<<32-1)...)))
		},
		"streams that say nothing": func(link string) {
			var frames []byte
			for i := range uint32(2000) {
				frames = append(frames, head(1, 1, 2*i+1, 0)...)
			}
			send(link, message(1, 0, frames))
		},
		"a device of nowhere": func(link string) {
			from := append([]byte{9}, "somewhere"...)
			send(link, message(1, 0, append(append(head(1, 1, 1, 0), head(0, 0, 1, uint32(len(from)))...), from...)))
		},
		"a flood": func(link string) {
			part := make([]byte, 1<<16)
			for i := range 400 {
				send(link, message(1, uint64(i)<<16, part))
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
