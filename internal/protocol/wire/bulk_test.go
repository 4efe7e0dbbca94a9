package wire

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// bulkTwins holds what is read and written of a body here against the general way.
func bulkTwins(t *testing.T, body []byte) {
	t.Helper()
	for _, make := range []func() Message{flow[KindTurn].make, flow[KindUpdate].make} {
		fast, plain := make(), make()
		took := fast.(bulky).takeBulk(body)
		err := decodeBody(body, plain)
		if took != (err == nil) && !(err == nil && null(plain)) {
			t.Fatalf("%T %x: taken %v, the general way says %v", fast, body, took, err)
		}
		if !took {
			continue
		}
		if !reflect.DeepEqual(fast, plain) {
			t.Fatalf("%x: %+v, the general way %+v", body, fast, plain)
		}
		if again, ok := fast.(bulky).appendBulk([]byte("before")); !ok || !bytes.Equal(again, append([]byte("before"), body...)) {
			t.Fatalf("%x is written as %x, %v", body, again, ok)
		}
	}
}

// null is a message whose byte string is CBOR's null.
func null(m Message) bool {
	switch m := m.(type) {
	case *Turn:
		return m.Payload == nil
	case *Update:
		return m.Data == nil
	}
	return false
}

// generally encodes a body the general way.
func generally(t testing.TB, m Message) []byte {
	t.Helper()
	b, err := code.Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBulkTwins(t *testing.T) {
	rng := rand.New(rand.NewChaCha8([32]byte{9}))
	edges := []uint64{0, 1, 23, 24, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64}
	edge := func() uint64 { return edges[rng.IntN(len(edges))] }
	lengths := []int{0, 1, 23, 24, 255, 256, 300, 65535, 65536}
	for range 500 {
		data := make([]byte, lengths[rng.IntN(len(lengths))])
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		for _, m := range []Message{
			&Turn{Round: edge(), Number: uint8(edge()), Payload: data, Millis: uint32(edge())},
			&Update{Round: edge(), Total: edge(), Offset: edge(), Data: data},
		} {
			body := generally(t, m)
			if got, ok := m.(bulky).appendBulk(nil); !ok || !bytes.Equal(got, body) {
				t.Fatalf("%+v: written as %x, the general way %x", m, got, body)
			}
			bulkTwins(t, body)
			// Damaged where the heads are, cut short, and with more behind it.
			for range 20 {
				bad := bytes.Clone(body)
				for range 1 + rng.IntN(2) {
					bad[rng.IntN(min(len(bad), 40))] = byte(rng.Uint32())
				}
				bulkTwins(t, bad)
			}
			bulkTwins(t, body[:rng.IntN(len(body))])
			bulkTwins(t, append(bytes.Clone(body), 0))
		}
	}
	for _, m := range []Message{new(Turn), new(Update)} {
		bulkTwins(t, generally(t, m)) // null
		if _, ok := m.(bulky).appendBulk(nil); ok {
			t.Errorf("%T without bytes is written as one with none", m)
		}
	}
	bulkTwins(t, nil)
}

// The bytes of what is read are the message's own.
func TestBulkIsCopied(t *testing.T) {
	f, err := Append(nil, &Turn{Round: 1, Number: 2, Payload: []byte("payload")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(f, FromDevice)
	clear(f)
	if err != nil || string(m.(*Turn).Payload) != "payload" {
		t.Errorf("%+v, %v", m, err)
	}
}

func FuzzBulk(f *testing.F) {
	for _, m := range []Message{
		&Turn{Round: 7, Number: 2, Payload: []byte("payload"), Millis: 1000},
		&Update{Round: 1 << 40, Total: 300, Offset: 24, Data: make([]byte, 276)},
		new(Turn),
	} {
		f.Add(generally(f, m))
	}
	f.Fuzz(bulkTwins)
}

// Only what was given back is used again, and not for what is much shorter.
func TestRecycledUpdates(t *testing.T) {
	rng := rand.New(rand.NewChaCha8([32]byte{10}))
	held := map[*Update][]byte{}
	for range 2000 {
		data := make([]byte, 1+rng.IntN(1<<rng.IntN(12)))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		frame, err := Append(nil, &Update{Round: 1, Total: 1 << 20, Data: data, masked: true})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(frame, FromDevice)
		if err != nil {
			t.Fatal(err)
		}
		u := m.(*Update)
		if cap(u.Data) > 2*len(data)+1 {
			t.Fatalf("%d bytes hold %d", len(data), cap(u.Data))
		}
		if held[u] = data; len(held) < 10 {
			continue
		}
		for u, data := range held {
			if !bytes.Equal(u.Data, data) {
				t.Fatal("an update's bytes were given to another")
			}
			if rng.IntN(2) == 0 {
				Recycle(u.Data)
				delete(held, u)
			}
		}
	}
}
