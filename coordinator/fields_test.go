package coordinator

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/nightly"
	"github.com/starling-fl/starling/secagg"
)

// The tests of this file change every field of everything that a device says, one at a
// time, to what is extreme (attack.Mutants), and say it to a coordinator. Each ends its
// own device's part at most: the round, or where its shard was spoilt the next, is
// released with the others', and no memory is taken for what is claimed.

// itemsOf is a message's array.
func itemsOf(t testing.TB, m wire.Message) attack.Array {
	frame, err := wire.Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	a, err := attack.DecodeArray(frame[1:], 0)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// mutant is the frame of a number, of those that a message may become; nil: there are
// not so many.
func mutant(t testing.TB, m wire.Message, k int) (name string, frame []byte) {
	for name, body := range attack.Mutants(itemsOf(t, m)) {
		if k--; k < 0 {
			return m.Kind().String() + name, append([]byte{byte(m.Kind())}, body...)
		}
	}
	return "", nil
}

var digits = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// classOf is by what a coordinator refuses a mutant: one that wire refuses by its error, one that secagg's encoding
// refuses likewise, and another by the field that was changed.
func classOf(name string, frame []byte) string {
	m, err := wire.Decode(frame, wire.FromDevice)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), " into Go ")
		return digits.ReplaceAllString(text, "#")
	}
	if turn, is := m.(*wire.Turn); is {
		var payload encoding.BinaryUnmarshaler
		switch secagg.Turn(turn.Number) {
		case secagg.TurnAdvertise:
			payload = new(secagg.Advertise)
		case secagg.TurnShare:
			payload = new(secagg.Shares)
		case secagg.TurnConfirm:
			payload = new(secagg.Confirmation)
		case secagg.TurnReveal:
			payload = new(secagg.Reveal)
		}
		if payload != nil {
			if err := payload.UnmarshalBinary(turn.Payload); err != nil {
				return digits.ReplaceAllString(err.Error(), "#")
			}
		}
	}
	field, _, _ := strings.Cut(name, " ")
	return field
}

// numbers lists those of a message's mutants that are played: some of each class, and with -short a quarter of these,
// since the race detector sees the same goroutines in each. What stands around a turn's payload is the same for all
// five: it is played with the first.
func numbers(t testing.TB, m wire.Message, turn int) (chosen []int) {
	few, n, taken := nightly.Few{Each: 2}, 0, 0
	for name, body := range attack.Mutants(itemsOf(t, m)) {
		if (turn == 1 || strings.Contains(name, "<>")) && few.Take(classOf(name, append([]byte{byte(m.Kind())}, body...))) {
			if taken++; !testing.Short() || taken%4 == 1 {
				chosen = append(chosen, n)
			}
		}
		n++
	}
	return chosen
}

// Every field of the five turns, by half of a round's devices at a time.
func TestHostileFieldsOfDevices(t *testing.T) {
	const honest, hostile = 10, 14
	for turn := 1; turn <= 5; turn++ {
		t.Run(fmt.Sprintf("turn %d", turn), func(t *testing.T) {
			played := 0
			var chosen []int
			for from := 0; from == 0 || from < len(chosen); from += hostile {
				job := loud(honest+hostile, 1)
				job.Shard.SemiHonest = true // a third of a shard is enough: the round is the others'
				err := bubble(t, job, honest+hostile, func(ctx context.Context, tb *table) {
					var wg sync.WaitGroup
					var mu sync.Mutex
					for i, p := range tb.players {
						p.delta = fixedDelta(0.05)
						if i < hostile {
							p.delta = nil
							p.before = func(p *player, at int, m wire.Message) (wire.Message, bool) {
								if at != turn {
									return m, false
								}
								mu.Lock() // not while it writes: in a bubble a mutex holds the clock
								if chosen == nil {
									chosen = numbers(t, m, turn)
								}
								k := from + i
								if k < len(chosen) {
									played++
								}
								mu.Unlock()
								if k >= len(chosen) {
									return m, false
								}
								_, frame := mutant(t, m, chosen[k])
								_ = p.conn.Write(ctx, websocket.MessageBinary, frame)
								p.before = func(*player, int, wire.Message) (wire.Message, bool) { return nil, true }
								return nil, false
							}
						}
						wg.Go(func() { _ = p.play(ctx) })
					}
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					before := m.TotalAlloc
					tb.allEnd(wg.Wait)
					runtime.ReadMemStats(&m)
					if m.TotalAlloc-before > 256<<20 {
						t.Errorf("mutants from %d: %d MiB were allocated", from, (m.TotalAlloc-before)>>20)
					}
					if got := tb.c.Result(); got.Rounds != 1 {
						t.Errorf("mutants from %d: %d rounds, %+v", from, got.Rounds, tb.c.Status())
					}
					for _, p := range tb.players[hostile:] {
						if p.finished == nil {
							t.Errorf("mutants from %d: an honest device was not told that the job is done", from)
						}
					}
				})
				if err != nil {
					t.Errorf("mutants from %d: Run ended with %v", from, err)
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d mutants", played)
			if least := map[bool]int{false: 10, true: 140}[nightly.All()]; played < least && !testing.Short() || played != len(chosen) {
				t.Errorf("only %d mutants of %d were played", played, len(chosen))
			}
		})
	}
}

// Every field of what opens a session, and of what a device says outside of a round: it
// is ignored, or its session ends with a code.
func TestHostileFieldsOfSessions(t *testing.T) {
	err := bubble(t, loud(3, 1), 3, func(ctx context.Context, tb *table) {
		ends := func(name string, p *player) {
			t.Helper()
			for {
				_, err := p.receive(ctx)
				if told := new(wire.Error); errors.As(err, &told) && (told.Code < 100 || told.Code > 199) {
					t.Errorf("%s: ended with %v", name, told)
				}
				if err != nil {
					break
				}
			}
			p.conn.CloseNow()
		}
		say := func(p *player, frame []byte) { _ = p.conn.Write(ctx, websocket.MessageBinary, frame) }
		fresh := func() *player {
			p := newPlayer(t, tb.token)
			p.http, p.unready = tb.client, true
			return p
		}
		dialed := func() *player {
			p := fresh()
			conn, _, err := websocket.Dial(ctx, p.token.Endpoint(), &websocket.DialOptions{HTTPClient: p.http})
			if err != nil {
				t.Fatal(err)
			}
			conn.SetReadLimit(wire.MaxFrame)
			p.conn = conn
			return p
		}
		played := 0
		hello := &wire.Hello{MinVersion: wire.Version, MaxVersion: wire.Version, Agent: "player"}
		stop, err := wire.Append(nil, &wire.Ready{}) // where none is due: it ends what goes on
		if err != nil {
			t.Fatal(err)
		}
		for name, body := range attack.Mutants(itemsOf(t, hello)) {
			p := dialed()
			say(p, append([]byte{byte(wire.KindHello)}, body...))
			say(p, stop)
			ends("hello"+name, p)
			played++
		}
		first, err := wire.Append(nil, hello)
		if err != nil {
			t.Fatal(err)
		}
		enrol := &wire.Enrol{Identity: fresh().id(), Session: make([]byte, 32), Task: make([]byte, 32)}
		for name, body := range attack.Mutants(itemsOf(t, enrol)) {
			p := dialed()
			say(p, first)
			if _, err := p.receive(ctx); err != nil {
				t.Fatal(err)
			}
			say(p, append([]byte{byte(wire.KindEnrol)}, body...))
			ends("enrol"+name, p) // none is signed
			played++
		}
		for _, m := range []wire.Message{
			&wire.Refuse{Round: 1, Code: 304, Reason: "no"}, &wire.Error{Code: 104, Text: "no", RetryMillis: 1},
			&wire.Turn{Round: 1, Number: 1, Payload: []byte("payload"), Millis: 1}, &wire.Ready{},
		} {
			for name, body := range attack.Mutants(itemsOf(t, m)) {
				p := fresh()
				p.key = tb.players[0].key
				p.session = tb.players[0].session
				if err := p.dial(ctx); err != nil {
					t.Fatal(err)
				}
				tb.players[0].session = p.session
				say(p, append([]byte{byte(m.Kind())}, body...))
				say(p, first) // ends what goes on
				ends(m.Kind().String()+name, p)
				played++
			}
		}
		t.Logf("%d mutants", played)
		if played < 800 {
			t.Errorf("only %d mutants were played", played)
		}
		var wg sync.WaitGroup // and the job goes on
		for _, p := range tb.players {
			p.conn.CloseNow()
			if err := p.dial(ctx); err != nil {
				t.Fatal(err)
			}
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		if got := tb.c.Result(); got.Rounds != 1 {
			t.Errorf("%d rounds", got.Rounds)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}
