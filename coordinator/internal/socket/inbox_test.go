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
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/wire"
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

// heard is what came by an inbox: messages, each behind its opcode, pongs that were
// answered, and what ended it.
type heard struct {
	messages [][]byte
	pinged   [][]byte
	err      error
}

// hear reads until the end, each message at most so many bytes at a time.
func hear(r io.Reader, step int) (h heard) {
	in := inbox{r: bufio.NewReader(r), control: func(opcode byte, payload []byte) error {
		if opcode == opPing {
			h.pinged = append(h.pinged, bytes.Clone(payload))
		}
		return nil
	}}
	for {
		opcode, err := in.begin()
		if err != nil {
			h.err = err
			return h
		}
		got := []byte{opcode}
		buf := make([]byte, step)
		for {
			n, err := in.Read(buf)
			got = append(got, buf[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				h.err = err
				return h
			}
		}
		h.messages = append(h.messages, got)
	}
}

// What RFC 6455 has clients send is understood, however it is cut, and what it has
// them not send is not.
func TestInboxFollowsRFC6455(t *testing.T) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	long := bytes.Repeat([]byte("starling"), 10_000)
	for name, c := range map[string]struct {
		in       []byte
		messages []string // each behind its opcode
		pinged   []string
		err      error
	}{
		"a frame": {
			join(part(0x82, []byte("hello"))),
			[]string{"\x02hello"}, nil, io.ErrUnexpectedEOF,
		},
		"text": {
			join(part(0x81, []byte("hi"))),
			[]string{"\x01hi"}, nil, io.ErrUnexpectedEOF,
		},
		"empty": {join(part(0x82, nil)), []string{"\x02"}, nil, io.ErrUnexpectedEOF},
		"16 bits of length": {
			join(part(0x82, long[:126])),
			[]string{"\x02" + string(long[:126])}, nil, io.ErrUnexpectedEOF,
		},
		"64 bits of length": {
			join(part(0x82, long)),
			[]string{"\x02" + string(long)}, nil, io.ErrUnexpectedEOF,
		},
		"in parts": {
			join(part(0x02, []byte("he")), part(0x00, nil), part(0x80, []byte("llo"))),
			[]string{"\x02hello"}, nil, io.ErrUnexpectedEOF,
		},
		"a ping within": {
			join(part(0x02, []byte("he")), part(0x89, []byte("you?")), part(0x80, []byte("llo"))),
			[]string{"\x02hello"}, []string{"you?"}, io.ErrUnexpectedEOF,
		},
		"the longest ping": {
			join(part(0x89, long[:125]), part(0x8a, nil), part(0x82, []byte("x"))),
			[]string{"\x02x"}, []string{string(long[:125])}, io.ErrUnexpectedEOF,
		},
		"close":                    {join(part(0x88, nil), part(0x82, []byte("x"))), nil, nil, errHungUp},
		"close with a status":      {join(part(0x88, []byte("\x03\xe8bye"))), nil, nil, errHungUp},
		"close of an application":  {join(part(0x88, []byte("\x0f\xa0"))), nil, nil, errHungUp},
		"cut":                      {join(part(0x82, []byte("hello")))[:9], nil, nil, io.ErrUnexpectedEOF},
		"cut head":                 {join(part(0x82, long[:200]))[:3], nil, nil, io.ErrUnexpectedEOF},
		"cut ping":                 {join(part(0x89, []byte("you?")))[:7], nil, nil, io.ErrUnexpectedEOF},
		"half a status":            {join(part(0x88, []byte{3})), nil, nil, errProtocol},
		"status 999":               {join(part(0x88, []byte{3, 231})), nil, nil, errProtocol},
		"status 1005":              {join(part(0x88, []byte{3, 237})), nil, nil, errProtocol},
		"status 5000":              {join(part(0x88, []byte{19, 136})), nil, nil, errProtocol},
		"a reason that is no text": {join(part(0x88, []byte("\x03\xe8\xff"))), nil, nil, errProtocol},
		"reserved bit":             {join(part(0xc2, []byte("x"))), nil, nil, errProtocol},
		"not masked":               {[]byte{0x82, 1, 'x', 0, 0, 0}, nil, nil, errProtocol},
		"opcode 3":                 {join(part(0x83, []byte("x"))), nil, nil, errProtocol},
		"opcode 11":                {join(part(0x8b, []byte("x"))), nil, nil, errProtocol},
		"a ping in parts":          {join(part(0x09, []byte("x"))), nil, nil, errProtocol},
		"a ping of 126":            {join(part(0x89, long[:126])), nil, nil, errProtocol},
		"continues nothing":        {join(part(0x80, []byte("x"))), nil, nil, errProtocol},
		"a message within another": {
			join(part(0x02, []byte("x")), part(0x82, []byte("y"))),
			nil, nil, errProtocol,
		},
		"16 bits for 125": {
			append([]byte{0x82, 0x80 | 126, 0, 125, 0, 0, 0, 0}, long[:125]...),
			nil, nil, errProtocol,
		},
		"64 bits for 65535": {
			append([]byte{0x82, 0x80 | 127, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0}, long...),
			nil, nil, errProtocol,
		},
		"the highest bit": {
			[]byte{0x82, 0x80 | 127, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
			nil, nil, errProtocol,
		},
		"too big, by its head": {
			[]byte{0x82, 0x80 | 127, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0},
			nil, nil, errTooBig,
		},
		"too big, of the largest": {
			[]byte{0x82, 0x80 | 127, 127, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0},
			nil, nil, errTooBig,
		},
		"too big, in parts": {
			join(part(0x02, make([]byte, wire.MaxFrame)), part(0x80, []byte("x"))),
			nil, nil, errTooBig,
		},
	} {
		for cut, r := range map[string]io.Reader{
			"whole": bytes.NewReader(c.in), "byte by byte": iotest.OneByteReader(bytes.NewReader(c.in)),
		} {
			if len(c.in) > 1<<17 && cut != "whole" {
				continue
			}
			got := hear(r, 7000)
			if !errors.Is(got.err, c.err) || !same(got.messages, c.messages) || !same(got.pinged, c.pinged) {
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
	in  *bytes.Reader
	out bytes.Buffer
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
		h.messages = append(h.messages, append([]byte{byte(kind)}, got...))
	}
	for b := conn.out.Bytes(); len(b) >= 2 && len(b) >= 2+int(b[1]); b = b[2+int(b[1]):] {
		if b[0] == 0x80|opPong {
			h.pinged = append(h.pinged, b[2:2+int(b[1])])
		}
	}
	return h
}

// FuzzInbox holds ours against the library: what ours takes, it takes alike, and ours
// refuses nothing else than what RFC 6455 has nobody send and the library overlooks.
func FuzzInbox(f *testing.F) {
	f.Add(bytes.Join([][]byte{part(0x02, []byte("he")), part(0x89, []byte("you?")), part(0x80, []byte("llo")),
		part(0x88, []byte("\x03\xe8bye"))}, nil))
	f.Add(bytes.Join([][]byte{part(0x82, bytes.Repeat([]byte("x"), 130)),
		part(0x82, bytes.Repeat([]byte("y"), 20)), part(0x8a, nil), part(0x81, []byte("z"))}, nil))
	f.Add([]byte{0x82, 0x80 | 126, 0, 125, 0, 0, 0, 0, 1, 2, 3})
	f.Add([]byte{0x82, 0x80 | 127, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		got, want := hear(bytes.NewReader(in), 4096), byLibrary(t, in)
		cut := errors.Is(got.err, io.ErrUnexpectedEOF) || errors.Is(got.err, errTooBig)
		if n := len(got.messages); cut && len(want.messages) == n+1 {
			want.messages = want.messages[:n] // the library takes a message that was cut off for a whole one
		}
		strict := false
		for _, ours := range []string{"as short as it can be", "not UTF-8", "not to be sent"} {
			strict = strict || strings.Contains(got.err.Error(), ours)
		}
		if len(got.messages) > len(want.messages) || !strict && len(got.messages) != len(want.messages) {
			t.Fatalf("%d messages and %v, by the library %d and %v", len(got.messages), got.err, len(want.messages), want.err)
		}
		for i, m := range got.messages {
			if !bytes.Equal(m, want.messages[i]) {
				t.Fatalf("message %d: %.60q, by the library %.60q", i, m, want.messages[i])
			}
		}
		if len(got.pinged) > len(want.pinged) || !strict && len(got.pinged) != len(want.pinged) {
			t.Fatalf("%d pings, by the library %d", len(got.pinged), len(want.pinged))
		}
		for i, p := range got.pinged {
			if !bytes.Equal(p, want.pinged[i]) {
				t.Fatalf("ping %d: %q, by the library %q", i, p, want.pinged[i])
			}
		}
	})
}
