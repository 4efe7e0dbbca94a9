package coordinator

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/model"
)

// fixedDelta makes every player send the same update.
func fixedDelta(v float32) func(int) []float32 {
	return func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = v
		}
		return x
	}
}

// loud is a job whose noise is far below one update, so that who was in a sum
// can be read from the released adapter.
func loud(n, rounds int) Job {
	j := tinyJob(n)
	j.Rounds = rounds
	j.Adapter.RankMin = 3
	j.Privacy.NoiseMultiplier, j.Privacy.Epsilon = 1e-3, 1e12
	return j
}

// moved is the mean change of the values that start at zero, B and the head at
// rank 3: with fixedDelta(v), v times the devices in all sums, over the fixed
// denominator. Stochastic rounding gives a round of n devices a standard
// deviation of about 0.0104/sqrt(66 n): 0.0006 for four devices.
func moved(tb *table) float64 { return movedOf(tb.c.Result().Adapter) }

func movedOf(a *model.Adapter) float64 {
	v, sum, n := a.Slice(3), 0.0, 0
	for _, s := range a.Layout().Spans(3) {
		if s.Kind == model.KindA {
			continue
		}
		for _, x := range v[s.Offset : s.Offset+s.Len] {
			sum += float64(x)
			n++
		}
	}
	return sum / float64(n)
}

// TestDropoutAtEveryTurn: a device that hangs up before any turn costs the round
// nothing but its own update, and the denominator stays what it was.
func TestDropoutAtEveryTurn(t *testing.T) {
	const n, v = 6, 0.05
	for turn := 1; turn <= 5; turn++ {
		job := loud(n, 1)
		tb := setTable(t, Config{Job: job}, n, func(i int, p *player) {
			p.delta = fixedDelta(v)
			if i == 2 {
				p.before = func(_ *player, at int, m wire.Message) (wire.Message, bool) { return m, at == turn }
			}
		})
		if err := tb.run(); err != nil {
			t.Fatalf("turn %d: %v", turn, err)
		}
		res := tb.c.Result()
		if res.Rounds != 1 || res.Abandoned != 0 || res.Dropped != 1 {
			t.Errorf("turn %d: %d rounds, %d abandoned, %d dropped", turn, res.Rounds, res.Abandoned, res.Dropped)
		}
		in := float64(n - 1)
		if turn > 3 {
			in = n // its update is in the sum
		}
		if got, want := moved(tb), v*in/n; math.Abs(got-want) > 0.004 {
			t.Errorf("turn %d: moved by %v, want %v: sum over the fixed denominator", turn, got, want)
		}
	}
}

// TestReconnectAtEveryTurn: a device whose connection breaks resumes, and its
// update counts; no message is taken twice.
func TestReconnectAtEveryTurn(t *testing.T) {
	const n, v = 5, 0.05
	for turn := 1; turn <= 5; turn++ {
		for _, sent := range []bool{false, true} { // whether the turn got out before
			job := loud(n, 1)
			job.Deadlines.Reconnect = 30 * time.Second
			tb := setTable(t, Config{Job: job}, n, nil)
			for i, p := range tb.players {
				p.delta = fixedDelta(v)
				if i != 1 {
					continue
				}
				broke := false
				p.before = func(p *player, at int, m wire.Message) (wire.Message, bool) {
					if at != turn || broke {
						return m, false
					}
					broke = true
					if sent {
						if err := p.send(tb.ctx, m); err != nil {
							t.Error(err)
						}
					}
					return m, true
				}
			}
			tb.reconnects = true
			if err := tb.run(); err != nil {
				t.Fatalf("turn %d: %v", turn, err)
			}
			res := tb.c.Result()
			if got := moved(tb); res.Dropped != 0 || res.Abandoned != 0 || math.Abs(got-v) > 0.004 {
				t.Errorf("turn %d, sent %v: moved by %v, want %v; %d dropped, errors %v", turn, sent, got, v, res.Dropped, tb.errs)
			}
		}
	}
}

// TestARestartedDeviceIsOut: a device that comes back in mid-round as another
// process, without the round's keys, hears nothing more of it and takes part again
// from the next round on; nobody waits for it. The last case has it back while its
// first turn is still being judged.
func TestARestartedDeviceIsOut(t *testing.T) {
	for turn := 1; turn <= 4; turn++ {
		restarts(t, turn, false)
	}
	restarts(t, 1, true)
}

// restarts has a device start again after it sent a turn.
func restarts(t *testing.T, turn int, judging bool) {
	const n = 6
	job := loud(n, 2)
	job.Deadlines.Reconnect = 10 * time.Minute // who waited for it would not end in this test
	tb := setTable(t, Config{Job: job}, n, nil)
	restarted := tb.players[1]
	untilBack := func() {
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			restarted.mu.Lock()
			back := restarted.waits > 0 || restarted.begunAgain
			restarted.mu.Unlock()
			if back {
				return
			}
		}
	}
	for i, p := range tb.players {
		done := false
		p.before = func(p *player, at int, m wire.Message) (wire.Message, bool) {
			if at != turn || done {
				return m, false
			}
			done = true
			switch i {
			case 1:
				if judging {
					busy := cap(tb.c.workers)
					for range busy {
						tb.c.workers <- struct{}{}
					}
					go func() {
						untilBack()
						for range busy {
							<-tb.c.workers
						}
					}()
				}
				if err := p.send(tb.ctx, m); err != nil && turn != 3 { // an upload is not a frame
					t.Error(err)
				}
				p.session, p.lost = nil, p.round
				return m, true
			case 3: // the turn stays open until the other is back
				untilBack()
			}
			return m, false
		}
	}
	tb.reconnects = true
	if err := tb.run(); err != nil {
		t.Fatalf("turn %d: %v", turn, err)
	}
	dropped := 1
	if turn == 1 && restarted.begunAgain { // its first turn never arrived
		dropped = 0
	}
	res := tb.c.Result()
	if tb.errs[1] != nil || res.Rounds != 2 || res.Abandoned != 0 || res.Dropped != dropped {
		t.Errorf("turn %d, judging %v: %v; %d rounds, %d abandoned, %d dropped", turn, judging, tb.errs[1], res.Rounds, res.Abandoned, res.Dropped)
	}
}

// TestBadMessages: what a device sends wrongly in a turn throws out that device
// alone.
func TestBadMessages(t *testing.T) {
	const n, v = 6, 0.05
	garbage := func(number int) func(*player, int, wire.Message) (wire.Message, bool) {
		return func(p *player, at int, m wire.Message) (wire.Message, bool) {
			if at != number {
				return m, false
			}
			if u, ok := m.(*wire.Update); ok {
				u.Data = u.Data[:len(u.Data)/2]
				u.Total = uint64(len(u.Data))
				return u, false
			}
			return &wire.Turn{Round: p.round, Number: uint8(number), Payload: []byte("garbage")}, false
		}
	}
	flipped := func(number int) func(*player, int, wire.Message) (wire.Message, bool) {
		return func(p *player, at int, m wire.Message) (wire.Message, bool) {
			if tn, ok := m.(*wire.Turn); ok && at == number {
				tn.Payload = slices.Clone(tn.Payload)
				tn.Payload[len(tn.Payload)-5] ^= 1
			}
			return m, false
		}
	}
	for name, c := range map[string]struct {
		before func(*player, int, wire.Message) (wire.Message, bool)
		in     int // updates in the sum
	}{
		"garbage as turn 1":       {garbage(1), n - 1},
		"garbage as turn 2":       {garbage(2), n - 1},
		"a short update":          {garbage(3), n - 1},
		"garbage as turn 4":       {garbage(4), n},
		"garbage as turn 5":       {garbage(5), n},
		"a bad signature, turn 1": {flipped(1), n - 1},
		"a bad signature, turn 4": {flipped(4), n},
	} {
		tb := setTable(t, Config{Job: loud(n, 1)}, n, func(i int, p *player) {
			p.delta = fixedDelta(v)
			if i == 4 {
				p.before = c.before
			}
		})
		if err := tb.run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		res := tb.c.Result()
		if got, want := moved(tb), v*float64(c.in)/n; res.Dropped != 1 || math.Abs(got-want) > 0.004 {
			t.Errorf("%s: moved by %v, want %v; %d dropped", name, got, want, res.Dropped)
		}
		if o := tb.players[4].outcomes; len(o) == 0 || o[0] != wire.OutcomeDropped {
			if !strings.Contains(name, "turn 1") { // who has no turn in is told to wait
				t.Errorf("%s: the device was told %v", name, o)
			}
		}
	}
}

// TestAlarm: an update that was tampered with behind the mask makes the sum
// leave its range: nothing is released, and the round is charged.
func TestAlarm(t *testing.T) {
	const n = 4
	job := loud(n, 2)
	dir := t.TempDir()
	tb := setTable(t, Config{Job: job, Dir: dir}, n, func(i int, p *player) {
		p.delta = fixedDelta(0.05)
		if i == 0 {
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				if u, ok := m.(*wire.Update); ok && p.round == 1 {
					for k := len(u.Data) / 2; k < len(u.Data); k++ {
						u.Data[k] ^= 0xa5 // adds to the masked lanes: the mask comes off, this does not
					}
				}
				return m, false
			}
		}
	})
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	l, err := store.ReadLedger(dir)
	if err != nil || len(l.Entries) != 3 {
		t.Fatalf("ledger of %d entries, %v", len(l.Entries), err)
	}
	if e := l.Entries[0]; e.Event.Kind != dp.KindCharged || !strings.Contains(e.Reason, "range") || e.Event.Round != 1 {
		t.Errorf("first entry %+v", e)
	}
	res := tb.c.Result()
	if res.Rounds != 2 || res.Abandoned != 1 || counted(t, tb.c.metrics.Alarms) != 1 {
		t.Errorf("result %+v, alarms %d", res, counted(t, tb.c.metrics.Alarms))
	}
	if got := moved(tb); math.Abs(got-0.1) > 0.01 {
		t.Errorf("moved by %v, want 0.1: nothing of the alarmed round", got)
	}
}

// TestBudgetStopsBeforeTheRound: a charged round eats budget, and the run ends
// before the round that would pass it; starting again changes nothing.
func TestBudgetStopsBeforeTheRound(t *testing.T) {
	const n = 4
	job := tinyJob(n)
	job.Rounds = 2
	job.Adapter.RankMin = 3
	dir := t.TempDir()
	bend := func(i int, p *player) {
		if i == 0 {
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				if u, ok := m.(*wire.Update); ok && p.round == 1 {
					for k := len(u.Data) / 2; k < len(u.Data); k++ {
						u.Data[k] ^= 0xa5
					}
				}
				return m, false
			}
		}
	}
	base := tinyBase(t)
	tb := setTable(t, Config{Job: job, Dir: dir, Base: base}, n, bend)
	err := tb.run()
	if !errors.Is(err, ErrBudget) {
		t.Fatalf("ended with %v", err)
	}
	check := func(tb *table) {
		t.Helper()
		res := tb.c.Result()
		if res.Rounds != 1 || res.Delivered == nil || res.Delivered.Epsilon > job.Privacy.Epsilon || res.Delivered.Rounds != 2 {
			t.Errorf("rounds %d, delivered %v", res.Rounds, res.Delivered)
		}
	}
	check(tb)
	for i, p := range tb.players {
		if p.finished == nil || !strings.Contains(p.finished.Reason, "budget") {
			t.Errorf("player %d was told %+v", i, p.finished)
		}
	}
	tb = setTable(t, Config{Job: job, Dir: dir, Base: base}, n, nil)
	if err := tb.run(); !errors.Is(err, ErrBudget) {
		t.Fatalf("the second start ended with %v", err)
	}
	check(tb)
	// It waits for nobody to say so, and says it whatever else it would wait for.
	for what, bend := range map[string]func(*Coordinator){
		"nobody is there":      func(*Coordinator) {},
		"a ledger of others":   func(c *Coordinator) { c.accounts.stranger = true },
		"an operator is asked": func(c *Coordinator) { c.dropouts.Beyond = "too many left" },
	} {
		c, err := New(Config{Job: job, Dir: dir, Base: base, Hosts: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		bend(c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := c.Run(ctx); !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "stopped before round 3") {
			t.Errorf("%s: ended with %v", what, err)
		}
		cancel()
		if res := c.Result(); res.Rounds != 1 || res.Checkpoint == "" {
			t.Errorf("%s: %+v", what, res)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if l, err := store.ReadLedger(dir); err != nil || len(l.Entries) != 2 {
		t.Errorf("%d entries, %v", len(l.Entries), err)
	}
}

// TestNoiseOnly: a cohort below the floor asks nobody, is committed with noise
// alone, and costs what any round costs.
func TestNoiseOnly(t *testing.T) {
	const n = 4
	job := tinyJob(n)
	dir := t.TempDir()
	tb := setTable(t, Config{Job: job, Dir: dir}, n, nil)
	tb.c.t.Job.Cohort.Floor = n + 1 // no valid job draws below its floor often enough to wait for it
	before := tb.c.core.Adapter().Slice(3)
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	l, err := store.ReadLedger(dir)
	if err != nil || len(l.Entries) != 2 {
		t.Fatalf("%d entries, %v", len(l.Entries), err)
	}
	for _, e := range l.Entries {
		if e.Event.Kind != dp.KindNoiseOnly || e.Event.B2 == 0 {
			t.Errorf("entry %+v", e.Event)
		}
	}
	if slices.Equal(before, tb.c.Result().Adapter.Slice(3)) {
		t.Error("no noise was added")
	}
	for i, p := range tb.players {
		if len(p.plans) != 0 {
			t.Errorf("player %d was asked for an update", i)
		}
	}
	if g := l.Entries[1].Delivered; g == nil || g.Rounds != 2 || g.Epsilon > job.Privacy.Epsilon {
		t.Errorf("guarantee %v", g)
	}
}

// TestRefusedSessions: versions, secrets, identities and frames are checked
// before anybody gets an assignment, and the device is told why.
func TestRefusedSessions(t *testing.T) {
	job := tinyJob(3)
	job.Enrolment.Secret = "correct horse battery"
	var log bytes.Buffer
	tb := setTable(t, Config{Job: job, Log: slog.New(slog.NewTextHandler(&log, nil))}, 0, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- tb.c.Run(ctx) }()

	code := func(name string, want uint16, says string, err error) {
		t.Helper()
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != want || !strings.Contains(e.Text, says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dial := func(p *player) *player {
		conn, _, err := websocket.Dial(ctx, p.token.Endpoint(), &websocket.DialOptions{HTTPClient: httpClient})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.CloseNow() })
		p.conn = conn
		return p
	}
	next := func(p *player) error {
		m, err := p.receive(ctx)
		if _, told := m.(*wire.Wait); told { // a device that comes back between rounds
			_, err = p.receive(ctx)
		}
		if err != nil {
			p.conn.CloseNow()
		}
		return err
	}

	p := dial(newPlayer(t, tb.token))
	_ = p.send(ctx, &wire.Hello{MinVersion: wire.Version + 1, MaxVersion: wire.Version + 3})
	code("another version", wire.CodeVersion, fmt.Sprintf("protocol %d, device %d..%d", wire.Version, wire.Version+1, wire.Version+3), next(p))

	p = newPlayer(t, tb.token)
	p.token.Secret = []byte("wrong horse battery")
	code("a wrong secret", wire.CodeEnrolment, "secret", p.dial(ctx))
	p.conn.CloseNow()

	p = newPlayer(t, tb.token)
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	forged := &forger{player: p, signer: other}
	code("a forged identity", wire.CodeIdentity, "signature", forged.dial(ctx))

	p = dial(newPlayer(t, tb.token))
	_ = p.conn.Write(ctx, websocket.MessageBinary, []byte{99, 1, 2})
	code("an unknown kind", wire.CodeProtocol, "kind", next(p))

	p = dial(newPlayer(t, tb.token))
	_ = p.conn.Write(ctx, websocket.MessageText, []byte("hello"))
	code("a text frame", wire.CodeProtocol, "text", next(p))

	p = dial(newPlayer(t, tb.token))
	_ = p.send(ctx, &wire.Refuse{Round: 1, Code: wire.CodeData})
	code("a message before hello", wire.CodeProtocol, "hello", next(p))

	p = dial(newPlayer(t, tb.token))
	_ = p.conn.Write(ctx, websocket.MessageBinary, make([]byte, wire.MaxFrame+1))
	code("an oversize frame", wire.CodeProtocol, "longer than any", next(p))

	good := newPlayer(t, tb.token)
	if err := good.dial(ctx); err != nil {
		t.Fatal(err)
	}
	twin := newPlayer(t, tb.token)
	twin.key = good.key
	code("an identity that is connected", wire.CodeDuplicate, "connected already", twin.dial(ctx))
	twin.conn.CloseNow()
	// With the session's token the newer connection wins.
	twin.session = good.session
	if err := twin.dial(ctx); err != nil {
		t.Errorf("a reconnect beside the old connection: %v", err)
	}
	if err := next(good); err == nil {
		t.Error("the old connection lives on")
	}
	good.conn.CloseNow()
	// Enrolled devices may not speak of rounds that are not, for ever.
	for range link.MaxFaults + 1 {
		if err := twin.send(ctx, &wire.Turn{Round: 77, Number: 1}); err != nil {
			break
		}
	}
	code("a flood", wire.CodeProtocol, "too often", next(twin))
	twin.conn.CloseNow()
	// Nor may they repeat themselves for ever.
	chatter := newPlayer(t, tb.token)
	if err := chatter.dial(ctx); err != nil {
		t.Fatal(err)
	}
	tb.c.events <- messageEvent{&session{}, nil} // a session the engine does not know changes nothing
	for range link.MaxFaults + 1 {
		if err := chatter.send(ctx, &wire.Refuse{Round: 1, Code: wire.CodeData}); err != nil {
			break
		}
	}
	code("repetition", wire.CodeProtocol, "too often", next(chatter))

	if n := len(tb.c.Status().Labels); n != 2 {
		t.Errorf("status has %d labels", n)
	}
	cancel()
	if err := watchdog.Recv(t, "what Run returns", ran, tb.sides()...); !errors.Is(err, context.Canceled) {
		t.Errorf("Run ended with %v", err)
	}
	if err := tb.c.Close(); err != nil {
		t.Error(err)
	}
	tb.server.Close()
	if refused := tb.c.traffic.Refused(); refused < 7 {
		t.Errorf("%d sessions refused", refused)
	}
	if said := log.String(); strings.Contains(said, "session broke") || strings.Count(said, "session refused") < 7 {
		t.Errorf("the log says of refused sessions: %.2000s", said)
	}
}

// forger signs the challenge with a key that is not its identity's.
type forger struct {
	*player
	signer ed25519.PrivateKey
}

func (f *forger) dial(ctx context.Context) error {
	id := f.id()
	f.key = append(slices.Clone(f.signer[:32]), id[:]...) // the public half stays, the seed does not
	err := f.player.dial(ctx)
	f.conn.CloseNow()
	return err
}
