package relay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

func unlinked() *pipe {
	p := &pipe{open: make(chan struct{})}
	p.change = sync.NewCond(&p.mu)
	return p
}

func message(kind byte, number uint64, payload string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{kind}, number), payload...)
}

// What does not follow what came before, or was not asked for, is refused.
func TestHostileMessages(t *testing.T) {
	full := string(make([]byte, window))
	for name, c := range map[string]struct {
		messages [][]byte
		want     error
	}{
		"in order":          {[][]byte{message(kindData, 0, "ab"), message(kindData, 2, ""), message(kindData, 2, "c"), message(kindRead, 5, "")}, nil},
		"the window":        {[][]byte{message(kindData, 0, full)}, nil},
		"empty":             {[][]byte{{}}, errWrong},
		"half a head":       {[][]byte{{kindData, 0, 0}}, errWrong},
		"another kind":      {[][]byte{message(9, 0, "")}, errWrong},
		"a hole":            {[][]byte{message(kindData, 0, "ab"), message(kindData, 3, "c")}, errLost},
		"said twice":        {[][]byte{message(kindData, 0, "ab"), message(kindData, 0, "ab")}, errLost},
		"a number too high": {[][]byte{message(kindData, 1<<64-1, "ab")}, errLost},
		"over the window":   {[][]byte{message(kindData, 0, full), message(kindData, window, "x")}, errFull},
		"read and not sent": {[][]byte{message(kindRead, 11, "")}, errWrong},
		"read less":         {[][]byte{message(kindRead, 5, ""), message(kindRead, 4, "")}, errWrong},
		"read, with more":   {[][]byte{message(kindRead, 5, "x")}, errWrong},
		"the end":           {[][]byte{message(kindEnd, 0, "")}, errEnded},
	} {
		p := unlinked()
		p.sent = 10
		var err error
		for _, m := range c.messages {
			if err == nil {
				err = p.heard(m)
			}
		}
		if !errors.Is(err, c.want) || err != nil && c.want == nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// FuzzMessages: whatever comes, no more is held than the window, and what is read is what came in order.
func FuzzMessages(f *testing.F) {
	f.Add(message(kindData, 0, "abc"), message(kindRead, 3, ""), message(kindData, 3, "d"))
	f.Add(message(kindData, 0, ""), message(kindEnd, 0, ""), []byte{})
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		p := unlinked()
		p.sent = 3
		var want []byte
		for _, m := range [][]byte{a, b, c} {
			if p.heard(m) == nil && m[0] == kindData {
				want = append(want, m[headBytes:]...)
			}
		}
		if !bytes.Equal(p.in.Bytes(), want) || p.came != uint64(len(want)) || p.in.Len() > window || p.taken > p.sent {
			t.Errorf("%d bytes held, %d came, want %d", p.in.Len(), p.came, len(want))
		}
	})
}

// FuzzAddress: where a stream is from is an address with a port, or the stream is refused.
func FuzzAddress(f *testing.F) {
	f.Add(appendAddress(nil, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}))
	f.Add(appendAddress(nil, &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 1, Zone: "eth0"}))
	f.Add([]byte{255, 'x'})
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := readAddress(&memory{in: bytes.NewReader(in)})
		if err != nil {
			return
		}
		if again, err := netip.ParseAddrPort(string(in[1 : 1+in[0]])); err != nil || again != got {
			t.Errorf("%v, %v of %q", got, err, in)
		}
	})
}

func TestAddressesComeThrough(t *testing.T) {
	for _, text := range []string{"192.0.2.1:443", "[2001:db8::1]:65535", "[::ffff:192.0.2.1]:1"} {
		want := netip.MustParseAddrPort(text)
		got, err := readAddress(&memory{in: bytes.NewReader(appendAddress(nil, net.TCPAddrFromAddrPort(want)))})
		if err != nil || got != netip.AddrPortFrom(want.Addr().Unmap(), want.Port()) {
			t.Errorf("%s came as %v, %v", text, got, err)
		}
	}
}

type memory struct {
	net.Conn
	in *bytes.Reader
}

func (m *memory) Read(b []byte) (int, error)    { return m.in.Read(b) }
func (*memory) SetReadDeadline(time.Time) error { return nil }
