package socket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/leaf/pipes"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

var (
	errText = errors.New("text")
	errLong = errors.New("long")
)

// any of the protocol's frames may come, and there is room for all.
func anything() Terms {
	most := func(byte) int { return wire.MaxFrame }
	return Terms{Most: most, Room: NewRoom(DefaultRoom), Text: errText, Long: errLong}
}

// counted counts the writes of the connections that it accepts.
type counted struct {
	net.Listener
	writes atomic.Int64
}

type countedConn struct {
	net.Conn
	l *counted
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l}, err
}

func (c countedConn) Write(p []byte) (int, error) {
	c.l.writes.Add(1)
	return c.Conn.Write(p)
}

// serve has each socket of a listener served, and dials one.
func serve(t *testing.T, l net.Listener, dial *http.Client, play func(*Socket)) *websocket.Conn {
	t.Helper()
	serveUnder(t, l, anything(), play)
	return dialed(t, l, dial)
}

// serveUnder has each socket of a listener served.
func serveUnder(t *testing.T, l net.Listener, terms Terms, play func(*Socket)) {
	t.Helper()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := Accept(w, r, terms)
		if err != nil {
			t.Error(err)
			return
		}
		defer s.CloseNow()
		play(s)
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-ended })
}

// dialed is a connection to what is served.
func dialed(t *testing.T, l net.Listener, dial *http.Client) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "http://"+l.Addr().String(), &websocket.DialOptions{HTTPClient: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(wire.MaxFrame)
	return conn
}

func listen(t *testing.T) *counted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &counted{Listener: l}
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Frames of every size come through as they were, beside pings, and leave in one
// write where they are not large.
func TestFramesComeThrough(t *testing.T) {
	l := listen(t)
	var before, spent []int64
	ended := make(chan struct{})
	conn := serve(t, l, client, func(s *Socket) {
		defer close(ended)
		for {
			b, err := s.Read()
			if err != nil {
				return
			}
			before = append(before, l.writes.Load())
			if err := s.Write(b); err != nil {
				t.Error(err)
				return
			}
			spent = append(spent, l.writes.Load())
		}
	})
	ctx := watchdog.Context(t)
	rng := rand.New(rand.NewChaCha8([32]byte{7}))
	lengths := []int{0, 1, 125, 126, wire.MaxFrame - 1, wire.MaxFrame}
	for _, n := range sizes[:len(sizes)-1] {
		lengths = append(lengths, n-9, n-4, n-1, n, n+1)
	}
	for range 40 {
		lengths = append(lengths, rng.IntN(1<<14-8))
	}
	for _, n := range lengths {
		sent := make([]byte, n)
		for i := range sent {
			sent[i] = byte(rng.Uint32())
		}
		if err := conn.Write(ctx, websocket.MessageBinary, sent); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if _, got, err := conn.Read(ctx); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes: %d came back, %v", n, len(got), err)
		}
	}
	conn.CloseNow()
	watchdog.Recv(t, "the server's end", ended)
	for i, n := range lengths {
		// A frame's head has ten bytes at most. Of a large frame the head goes first.
		if w := spent[i] - before[i]; w != 1 && (n <= 1<<14-10 || w != 2) {
			t.Errorf("a frame of %d bytes took %d writes", n, w)
		}
	}
}

// Answers to pings go out whole, before, between and after the frames beside them.
func TestPingsBesideFrames(t *testing.T) {
	const frames = 300
	conn := serve(t, listen(t), client, func(s *Socket) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range frames {
				if err := s.Write(bytes.Repeat([]byte{byte(i)}, i*100)); err != nil {
					t.Error(err)
				}
			}
		}()
		_, _ = s.Read() // pings, and the end
		<-done
	})
	ctx := watchdog.Context(t)
	pinged := make(chan error, 1)
	go func() {
		var err error
		for range frames {
			err = errors.Join(err, conn.Ping(ctx))
		}
		pinged <- err
	}()
	for i := range frames {
		if _, got, err := conn.Read(ctx); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, i*100)) {
			t.Fatalf("frame %d: %d bytes, %v", i, len(got), err)
		}
	}
	go func() { _, _, _ = conn.Read(ctx) }() // the last answers
	if err := watchdog.Recv(t, "the pings", pinged); err != nil {
		t.Error(err)
	}
	conn.CloseNow()
}

// A message of text is none, and one that is too large.
func TestHostileMessages(t *testing.T) {
	for name, c := range map[string]struct {
		kind websocket.MessageType
		n    int
		want error
	}{
		"text":      {websocket.MessageText, 5, errText},
		"too large": {websocket.MessageBinary, wire.MaxFrame + 1, errLong},
		"huge":      {websocket.MessageBinary, 4 * wire.MaxFrame, errLong},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan error, 1)
			conn := serve(t, listen(t), client, func(s *Socket) {
				_, err := s.Read()
				got <- err
			})
			_ = conn.Write(watchdog.Context(t), c.kind, make([]byte, c.n)) // it may be cut off
			if err := watchdog.Recv(t, "what Read returns", got); !errors.Is(err, c.want) {
				t.Errorf("read: %v, want %v", err, c.want)
			}
		})
	}
}

// Who reads nothing is cut off between LeastWrite and MostWrite, whenever the
// connection was last written to; who is merely silent for long is not.
func TestHostileReaderThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires := pipes.New()
		took := make(chan time.Duration, 1)
		conn := serve(t, wires, wires.Client(), func(s *Socket) {
			for range 3 { // an old deadline of the connection's ends nothing
				if err := s.Write([]byte("frame")); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Hour)
			}
			if err := s.Write([]byte("frame")); err != nil {
				t.Error(err)
			}
			time.Sleep(MostWrite - LeastWrite)
			start := time.Now()
			if s.Write(make([]byte, 1000)) == nil {
				t.Error("a frame that nobody read was sent")
			}
			took <- time.Since(start)
		})
		for range 4 {
			if _, _, err := conn.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if d := <-took; d < LeastWrite || d > MostWrite {
			t.Errorf("cut off after %v", d)
		}
		wires.Close()
	})
}

// An answer to a ping is written after an hour of silence, too.
func TestPingAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires := pipes.New()
		conn := serve(t, wires, wires.Client(), func(s *Socket) {
			if err := s.Write([]byte("frame")); err != nil {
				t.Error(err)
			}
			_, _ = s.Read()
		})
		if _, _, err := conn.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		ctx := conn.CloseRead(t.Context())
		if err := conn.Ping(ctx); err != nil {
			t.Error(err)
		}
		conn.CloseNow()
		wires.Close()
	})
}

// A ping that comes while a large frame takes long on a slow line ends nothing, and is
// answered behind the frame.
func TestPingBehindALargeFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires := pipes.New()
		conn := serve(t, wires, wires.Client(), func(s *Socket) {
			go func() {
				if err := s.Write(make([]byte, wire.MaxFrame)); err != nil {
					t.Error(err)
				}
			}()
			_, _ = s.Read() // the ping, and the end
		})
		_, r, err := conn.Reader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pinged := make(chan error, 1)
		go func() { pinged <- conn.Ping(t.Context()) }()
		time.Sleep(LeastWrite - time.Second)
		if b, err := io.ReadAll(r); err != nil || len(b) != wire.MaxFrame {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		conn.CloseRead(t.Context())
		if err := <-pinged; err != nil {
			t.Error(err)
		}
		conn.CloseNow()
		wires.Close()
	})
}

// CloseNow ends a write that nobody reads, at once.
func TestCloseEndsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires := pipes.New()
		conn := serve(t, wires, wires.Client(), func(s *Socket) {
			start := time.Now()
			time.AfterFunc(time.Second, s.CloseNow)
			if err := s.Write(make([]byte, 1000)); err == nil || time.Since(start) != time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
		synctest.Wait()
		time.Sleep(2 * time.Second)
		conn.CloseNow()
		wires.Close()
	})
}

// The closing handshake is held from either side, whether anybody reads here or not, and
// what the peer sends meanwhile is read: it hears our last frame and why it must go.
func TestFarewells(t *testing.T) {
	for name, c := range map[string]struct {
		kind websocket.MessageType
		play func(*Socket)
		want websocket.StatusCode
	}{
		"ours, while a reader waits": {websocket.MessageText, func(s *Socket) {
			read := make(chan error, 1)
			go func() { _, err := s.Read(); read <- err }()
			s.Close(false)
			if err := <-read; err == nil {
				t.Error("a frame was read after the end")
			}
		}, websocket.StatusNormalClosure},
		"a refusal in the midst of a message": {websocket.MessageText, func(s *Socket) {
			if _, err := s.Read(); !errors.Is(err, errText) {
				t.Errorf("read: %v", err)
			}
			s.Close(true)
		}, websocket.StatusPolicyViolation},
		"the peer's": {websocket.MessageBinary, func(s *Socket) {
			for range 2 {
				if b, err := s.Read(); (err == nil) != (len(b) == 100_000) {
					t.Errorf("read: %d bytes, %v", len(b), err)
				}
			}
		}, websocket.StatusGoingAway},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			conn := serve(t, listen(t), client, func(s *Socket) {
				defer close(ended)
				if err := s.Write([]byte("last")); err != nil {
					t.Error(err)
				}
				c.play(s)
			})
			ctx := watchdog.Context(t)
			err := conn.Write(ctx, c.kind, make([]byte, 100_000))
			if err != nil && c.want != websocket.StatusNormalClosure {
				t.Fatal(err)
			}
			if _, got, err := conn.Read(ctx); err != nil || string(got) != "last" {
				t.Fatalf("%q, %v", got, err)
			}
			if c.want == websocket.StatusGoingAway {
				if err := conn.Close(c.want, "bye"); err != nil { // it waits for the same status
					t.Error(err)
				}
			} else if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != c.want {
				t.Errorf("the peer hears %v", err)
			}
			watchdog.Recv(t, "the end", ended)
		})
	}
}

// A peer that breaks the protocol is told so; nothing that it sends afterwards counts.
func TestHostileFrameIsToldSo(t *testing.T) {
	wires := listen(t)
	serveUnder(t, wires, anything(), func(s *Socket) {
		for range 2 {
			if b, err := s.Read(); err == nil {
				t.Errorf("%q was read", b)
			}
		}
	})
	conn, err := net.Dial("tcp", wires.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var sent bytes.Buffer
	if err := upgradeRequest().Write(&sent); err != nil {
		t.Fatal(err)
	}
	sent.Write(part(0xf2, []byte("reserved bits"))) // with the request: nobody waits for the answer
	sent.Write(part(0x82, []byte("a good frame")))
	if _, err := conn.Write(sent.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	_, got, _ = bytes.Cut(got, []byte("\r\n\r\n"))
	if len(got) < 4 || got[0] != 0x88 || string(got[2:4]) != "\x03\xea" {
		t.Errorf("%q, %v; want a close frame with status 1002", got, err)
	}
}

// Anyone who does not answer a farewell holds it up for mostFarewell at most.
func TestHostileFarewell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires := pipes.New()
		took := make(chan time.Duration, 1)
		conn := serve(t, wires, wires.Client(), func(s *Socket) {
			start := time.Now()
			s.Close(false)
			took <- time.Since(start)
		})
		if d := <-took; d > mostFarewell {
			t.Errorf("a farewell took %v", d)
		}
		conn.CloseNow()
		wires.Close()
	})
}

// What cannot be upgraded is answered.
func TestRefusedUpgrade(t *testing.T) {
	w := httptest.NewRecorder()
	if _, err := Accept(w, httptest.NewRequest(http.MethodGet, "/", nil), anything()); err == nil || w.Code != http.StatusUpgradeRequired {
		t.Errorf("%v, %d", err, w.Code)
	}
}

// Anyone who sends slowly holds at most four times what it sent, or the smallest buffer.
func TestHostileDribblerHoldsLittle(t *testing.T) {
	for i, n := range sizes {
		if i > 0 && n > 4*sizes[i-1]+wire.MaxFrame-1<<20+2 {
			t.Errorf("after %d bytes %d are held", sizes[i-1], n)
		}
		if b := buffer(n); cap(*b) != n || len(*b) != 0 {
			t.Errorf("a buffer of %d for %d", cap(*b), n)
		} else {
			release(b)
		}
	}
	if !slices.IsSorted(sizes[:]) || sizes[0] > 1<<12 {
		t.Errorf("sizes %v", sizes)
	}
}

// BenchmarkFrames: a coordinator's side of a frame there and back.
func BenchmarkFrames(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := Accept(w, r, anything())
		if err != nil {
			return
		}
		defer s.CloseNow()
		for {
			f, err := s.Read()
			if err != nil || s.Write(f) != nil {
				return
			}
		}
	})}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	ctx := context.Background()
	conn, _, err := websocket.Dial(ctx, "http://"+l.Addr().String(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(wire.MaxFrame)
	frame := make([]byte, 8000)
	b.ReportAllocs()
	for b.Loop() {
		if err := conn.Write(ctx, websocket.MessageBinary, frame); err != nil {
			b.Fatal(err)
		}
		if _, _, err := conn.Read(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
