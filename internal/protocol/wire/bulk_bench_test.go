package wire

import "testing"

// A device's message of some hundred bytes, and a chunk of its update, beside the
// general way.
func BenchmarkBulk(b *testing.B) {
	turn := &Turn{Round: 1 << 20, Number: 2, Payload: make([]byte, 700), Millis: 30_000}
	update := &Update{Round: 1 << 20, Total: 1 << 20, Offset: 1 << 16, Data: make([]byte, 1<<16)}
	for _, c := range []struct {
		name string
		m    bulky
		next func() bulky
	}{
		{"turn", turn, func() bulky { return new(Turn) }},
		{"update", update, func() bulky { return new(Update) }},
	} {
		body := generally(b, c.m.(Message))
		room := make([]byte, 0, c.m.room())
		b.Run(c.name+"/write", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := c.m.appendBulk(room); !ok {
					b.Fatal("left to the general way")
				}
			}
		})
		b.Run(c.name+"/read", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !c.next().takeBulk(body) {
					b.Fatal("left to the general way")
				}
			}
		})
		b.Run(c.name+"/general read", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := decodeBody(body, c.next().(Message)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
