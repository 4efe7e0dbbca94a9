package relay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func message(kind byte, number uint64, frames ...[]byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{kind}, number), bytes.Join(frames, nil)...)
}

func framed(kind byte, stream uint32, payload string) []byte {
	return append(appendHead(nil, kind, stream, len(payload)), payload...)
}

const somewhere = "192.0.2.1:443"

func began(stream uint32) []byte { return framed(frameOpen, stream, somewhere) }

func credit(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// What does not follow what came before, or was not asked for, is refused.
func TestHostileMessages(t *testing.T) {
	most := strings.Repeat("x", upWindow)
	for name, c := range map[string]struct {
		messages [][]byte
		want     error
	}{
		"in order":              {[][]byte{message(kindData, 0, began(1), framed(frameData, 1, "ab")), message(kindData, 33), message(kindRead, 5)}, nil},
		"a window":              {[][]byte{message(kindData, 0, began(1), framed(frameData, 1, most), began(9), framed(frameData, 9, most))}, nil},
		"empty":                 {[][]byte{{}}, errWrong},
		"half a head":           {[][]byte{{kindData, 0, 0}}, errWrong},
		"another kind":          {[][]byte{message(9, 0)}, errWrong},
		"a hole":                {[][]byte{message(kindData, 0, began(1)), message(kindData, 23)}, errLost},
		"said twice":            {[][]byte{message(kindData, 0, began(1)), message(kindData, 0, began(1))}, errLost},
		"a number too high":     {[][]byte{message(kindData, 1<<64-1)}, errLost},
		"read and not sent":     {[][]byte{message(kindRead, 11)}, errWrong},
		"read less":             {[][]byte{message(kindRead, 5), message(kindRead, 4)}, nil},
		"read, with more":       {[][]byte{message(kindRead, 5, []byte("x"))}, errWrong},
		"the end":               {[][]byte{message(kindEnd, 0)}, errEnded},
		"half a frame":          {[][]byte{message(kindData, 0, began(1)[:12])}, errWrong},
		"half a frame's head":   {[][]byte{message(kindData, 0, began(1)[:8])}, errWrong},
		"a frame of 4 GiB":      {[][]byte{message(kindData, 0, began(1), appendHead(nil, frameData, 1, 1<<32-1))}, errWrong},
		"a frame of no kind":    {[][]byte{message(kindData, 0, framed(0, 1, ""))}, errWrong},
		"data without a byte":   {[][]byte{message(kindData, 0, began(1), framed(frameData, 1, ""))}, errWrong},
		"half a credit":         {[][]byte{message(kindData, 0, began(1), framed(frameCredit, 1, "abc"))}, errWrong},
		"an end with a payload": {[][]byte{message(kindData, 0, began(1), framed(frameEnd, 1, "x"))}, errWrong},
		"over a window":         {[][]byte{message(kindData, 0, began(1), framed(frameData, 1, most), framed(frameData, 1, "x"))}, errFull},
		"credit for nothing":    {[][]byte{message(kindData, 0, began(1), framed(frameCredit, 1, credit(1)))}, errFull},
		"much credit":           {[][]byte{message(kindData, 0, began(1), framed(frameCredit, 1, credit(1<<32-1)))}, errFull},
		"after the end":         {[][]byte{message(kindData, 0, began(1), framed(frameEnd, 1, ""), framed(frameData, 1, "x"))}, errWrong},
		"of no stream":          {[][]byte{message(kindData, 0, framed(frameData, 1, "x"))}, errStream},
		"of one that is over":   {[][]byte{message(kindData, 0, began(1), framed(frameReset, 1, ""), framed(frameData, 1, "x"))}, nil},
		"a stream twice":        {[][]byte{message(kindData, 0, began(1), began(1))}, errStream},
		"a stream of before":    {[][]byte{message(kindData, 0, began(7), began(6))}, errStream},
		"stream 0":              {[][]byte{message(kindData, 0, began(0))}, errStream},
		"a long address":        {[][]byte{message(kindData, 0, framed(frameOpen, 1, strings.Repeat("1", mostAddress+1)))}, errWrong},
	} {
		l := unlinked(func(*stream) {})
		l.sent = 10
		var err error
		for _, m := range c.messages {
			if err == nil {
				err = l.hear(m)
			}
		}
		if !errors.Is(err, c.want) || err != nil && c.want == nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	l := unlinked(nil)
	if err := l.hear(message(kindData, 0, began(1))); !errors.Is(err, errStream) {
		t.Errorf("an owner that opens a stream: %v", err)
	}
	for _, from := range []string{"", "somewhere", "192.0.2.1", "192.0.2.1:99999"} {
		if err := unlinked(func(*stream) {}).hear(message(kindData, 0, framed(frameOpen, 1, from))); err == nil {
			t.Errorf("a device at %q is taken", from)
		}
	}
}

// FuzzMessages: whatever comes, no more of a stream is held than its window, and what is read is
// what came in order.
func FuzzMessages(f *testing.F) {
	f.Add(message(kindData, 0, began(1), framed(frameData, 1, "abc"), began(2)), message(kindRead, 3), message(kindData, 0, framed(frameEnd, 1, "")))
	f.Add(message(kindData, 0, began(1), framed(frameCredit, 1, credit(9)), framed(frameReset, 1, "")), message(kindEnd, 0), []byte{})
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		var streams []*stream
		l := unlinked(func(s *stream) { streams = append(streams, s) })
		l.sent = 3
		want := map[uint32][]byte{}
		for _, m := range [][]byte{a, b, c} {
			if l.hear(m) != nil {
				break
			}
			for rest := m[headBytes:]; len(rest) > 0; {
				var f frame
				var err error
				if f, rest, err = nextFrame(rest); err != nil {
					t.Fatalf("%v in a message that was taken", err)
				}
				if s := l.streams[f.stream]; s != nil && f.kind == frameData {
					want[f.stream] = append(want[f.stream], f.payload...)
				}
			}
		}
		if l.taken > l.sent || len(streams) > 0 && l.last != streams[len(streams)-1].id {
			t.Errorf("%d taken of %d, stream %d is the last", l.taken, l.sent, l.last)
		}
		for _, s := range streams {
			if l.streams[s.id] == nil {
				continue // over
			}
			held := s.in.len()
			if held > upWindow || s.credit > downWindow || s.room != upWindow-held {
				t.Errorf("stream %d holds %d, may send %d, get %d", s.id, held, s.credit, s.room)
			}
			got, err := io.ReadAll(&io.LimitedReader{R: s, N: int64(held)})
			if all := want[s.id]; err != nil || len(got) != held || len(all) < held || !bytes.Equal(got, all[:held]) {
				t.Errorf("stream %d: %d bytes read, %d came, %v", s.id, len(got), len(all), err)
			}
		}
	})
}

func TestAddressesComeThrough(t *testing.T) {
	for text, want := range map[string]string{"192.0.2.1:443": "", "[2001:db8::1]:65535": "", "[::ffff:192.0.2.1]:1": "192.0.2.1:1", "[fe80::1%eth0]:1": "[fe80::1]:1"} {
		if want == "" {
			want = text
		}
		at, err := addressOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)))
		if err != nil {
			t.Fatal(err)
		}
		var got *stream
		l := unlinked(func(s *stream) { got = s })
		if err := l.hear(message(kindData, 0, framed(frameOpen, 1, at.String()))); err != nil || got.RemoteAddr().String() != want {
			t.Errorf("%s came as %v, %v", text, got.RemoteAddr(), err)
		}
	}
}
