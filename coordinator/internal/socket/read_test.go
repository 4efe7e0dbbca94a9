package socket

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// part is a frame as a client sends it, byte for byte.
func part(first byte, payload []byte) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	mask := [4]byte{0x5a, 0x01, byte(len(payload)), 0xff}
	b = append(b, mask[:]...)
	for i, x := range payload {
		b = append(b, x^mask[i%4])
	}
	return b
}

// heard is what came by a connection: messages, pings that were answered, and what ended
// it.
type heard struct {
	messages [][]byte
	pinged   [][]byte
	err      error
}

// hear reads what comes to its end.
func hear(t *testing.T, in io.Reader) (h heard) {
	t.Helper()
	conn := &memory{in: in}
	s, err := Accept(hijacked{httptest.NewRecorder(), conn}, upgradeRequest(), anything())
	if err != nil {
		t.Fatal(err)
	}
	defer s.CloseNow()
	for {
		got, err := s.Read()
		if err != nil {
			h.err = err
			if again, after := s.Read(); !errors.Is(after, err) {
				t.Fatalf("%q was read after %v, %v", again, err, after)
			}
			h.pinged = conn.pongs()
			return h
		}
		h.messages = append(h.messages, bytes.Clone(got))
	}
}

// What RFC 6455 has clients send is understood, however it is cut, and what it has
// them not send is not.
func TestReadFollowsRFC6455(t *testing.T) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	long := bytes.Repeat([]byte("starling"), 10_000)
	for name, c := range map[string]struct {
		in       []byte
		messages []string
		pinged   []string
		err      string // what the reason says
	}{
		"a frame":           {part(0x82, []byte("hello")), []string{"hello"}, nil, "EOF"},
		"empty":             {part(0x82, nil), []string{""}, nil, "EOF"},
		"16 bits of length": {part(0x82, long[:126]), []string{string(long[:126])}, nil, "EOF"},
		"64 bits of length": {part(0x82, long), []string{string(long)}, nil, "EOF"},
		"in parts": {
			join(part(0x02, []byte("he")), part(0x00, nil), part(0x80, []byte("llo"))),
			[]string{"hello"}, nil, "EOF",
		},
		"a ping within": {
			join(part(0x02, []byte("he")), part(0x89, []byte("you?")), part(0x80, []byte("llo"))),
			[]string{"hello"}, []string{"you?"}, "EOF",
		},
		"the longest ping": {
			join(part(0x89, long[:125]), part(0x8a, nil), part(0x82, []byte("x"))),
			[]string{"x"}, []string{string(long[:125])}, "EOF",
		},
		"text":                 {part(0x81, []byte("hi")), nil, nil, errText.Error()},
		"close":                {join(part(0x88, nil), part(0x82, []byte("x"))), nil, nil, "StatusNoStatusRcvd"},
		"close with a status":  {part(0x88, []byte("\x03\xe8bye")), nil, nil, "StatusNormalClosure"},
		"close of an app":      {part(0x88, []byte("\x0f\xa0")), nil, nil, "StatusCode(4000)"},
		"cut":                  {part(0x82, []byte("hello"))[:9], nil, nil, "EOF"},
		"cut before its bytes": {part(0x82, []byte("hello"))[:6], nil, nil, "EOF"},
		"cut between parts":    {part(0x02, []byte("hello")), nil, nil, "EOF"},
		"cut where a buffer ends": {
			part(0x82, long)[:14+sizes[0]], nil, nil, "EOF",
		},
		"cut head":                 {part(0x82, long[:200])[:3], nil, nil, "EOF"},
		"cut ping":                 {part(0x89, []byte("you?"))[:7], nil, nil, "EOF"},
		"half a status":            {part(0x88, []byte{3}), nil, nil, "close payload"},
		"status 999":               {part(0x88, []byte{3, 231}), nil, nil, "status code"},
		"status 1005":              {part(0x88, []byte{3, 237}), nil, nil, "status code"},
		"status 5000":              {part(0x88, []byte{19, 136}), nil, nil, "status code"},
		"reserved bit":             {part(0xc2, []byte("x")), nil, nil, "rsv"},
		"not masked":               {[]byte{0x82, 1, 'x', 0, 0, 0}, nil, nil, "unmasked"},
		"opcode 3":                 {part(0x83, []byte("x")), nil, nil, "opcode"},
		"opcode 11":                {part(0x8b, []byte("x")), nil, nil, "opcode"},
		"a ping in parts":          {part(0x09, []byte("x")), nil, nil, "fragmented"},
		"a ping of 126":            {part(0x89, long[:126]), nil, nil, "invalid length"},
		"continues nothing":        {part(0x80, []byte("x")), nil, nil, "continuation"},
		"a message within another": {join(part(0x02, []byte("x")), part(0x82, []byte("y"))), nil, nil, "without finishing"},
		"the highest bit": {
			[]byte{0x82, 0x80 | 127, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, nil, nil, "length",
		},
		"too big": {part(0x82, make([]byte, wire.MaxFrame+1)), nil, nil, errLong.Error()},
		"too big, in parts": {
			join(part(0x02, make([]byte, wire.MaxFrame)), part(0x80, []byte("x"))), nil, nil, errLong.Error(),
		},
		"too big, cut": {
			[]byte{0x82, 0x80 | 127, 127, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0}, nil, nil, "EOF",
		},
	} {
		for cut, r := range map[string]io.Reader{
			"whole": bytes.NewReader(c.in), "byte by byte": iotest.OneByteReader(bytes.NewReader(c.in)),
		} {
			if len(c.in) > 1<<17 && cut != "whole" {
				continue
			}
			got := hear(t, r)
			if !strings.Contains(got.err.Error(), c.err) || !same(got.messages, c.messages) || !same(got.pinged, c.pinged) {
				t.Errorf("%s, %s: %.40q, pings %.40q, %v", name, cut, got.messages, got.pinged, got.err)
			}
		}
	}
}

func same(got [][]byte, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if string(got[i]) != want[i] {
			return false
		}
	}
	return true
}

// memory is a connection on which all has come already, and then nothing more.
type memory struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

// pongs are the pings that were answered.
func (m *memory) pongs() (pinged [][]byte) {
	for b := m.out.Bytes(); len(b) >= 2 && len(b) >= 2+int(b[1]); b = b[2+int(b[1]):] {
		if b[0] == 0x80|opPong {
			pinged = append(pinged, b[2:2+int(b[1])])
		}
	}
	return pinged
}

func (m *memory) Read(p []byte) (int, error)       { return m.in.Read(p) }
func (m *memory) Write(p []byte) (int, error)      { return m.out.Write(p) }
func (m *memory) Close() error                     { return nil }
func (m *memory) SetDeadline(time.Time) error      { return nil }
func (m *memory) SetWriteDeadline(time.Time) error { return nil }

// hijacked makes a response of it.
type hijacked struct {
	http.ResponseWriter
	conn *memory
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

func upgradeRequest() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.ProtoMajor, r.ProtoMinor = 1, 1
	for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
		r.Header.Set(k, v)
	}
	return r
}

// byLibrary is what the library makes of it.
func byLibrary(t *testing.T, in []byte) (h heard) {
	t.Helper()
	conn := &memory{in: bytes.NewReader(in)}
	ws, err := websocket.Accept(hijacked{httptest.NewRecorder(), conn}, upgradeRequest(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	ws.SetReadLimit(wire.MaxFrame)
	for {
		kind, got, err := ws.Read(t.Context())
		if err != nil {
			h.err = err
			break
		}
		if kind != websocket.MessageBinary {
			h.err = errText
			break
		}
		h.messages = append(h.messages, got)
	}
	h.pinged = conn.pongs()
	return h
}

// FuzzRead: of whatever bytes, a socket takes the messages that the library takes, but
// for one that the connection's end cut off, and answers the same pings.
func FuzzRead(f *testing.F) {
	f.Add(bytes.Join([][]byte{part(0x02, []byte("he")), part(0x89, []byte("you?")), part(0x80, []byte("llo")),
		part(0x88, []byte("\x03\xe8bye"))}, nil))
	f.Add(bytes.Join([][]byte{part(0x82, bytes.Repeat([]byte("x"), 130)),
		part(0x82, bytes.Repeat([]byte("y"), 20)), part(0x8a, nil), part(0x81, []byte("z"))}, nil))
	f.Add([]byte{0x82, 0x80 | 126, 0, 125, 0, 0, 0, 0, 1, 2, 3})
	f.Add([]byte{0x82, 0x80 | 127, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		got, want := hear(t, bytes.NewReader(in)), byLibrary(t, in)
		if n := len(got.messages); errors.Is(got.err, io.ErrUnexpectedEOF) && len(want.messages) == n+1 {
			want.messages = want.messages[:n]
		}
		if !slices.EqualFunc(got.messages, want.messages, bytes.Equal) {
			t.Fatalf("%.60q and %v, by the library %.60q and %v", got.messages, got.err, want.messages, want.err)
		}
		if !slices.EqualFunc(got.pinged, want.pinged, bytes.Equal) {
			t.Fatalf("pings %q, by the library %q", got.pinged, want.pinged)
		}
	})
}
