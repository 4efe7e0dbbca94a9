package main

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// Devices written from the document alone and a real one finish rounds together:
// nothing that a client needs is missing from docs/PROTOCOL.md.
func TestHostileClientsAreHonestFirst(t *testing.T) {
	s := serves(t, 2, "wire: {uplink: nf4}", "--tls")
	var others []<-chan ended
	for i := range 3 {
		others = append(others, takesPart(t, attack.NewDevice(s.token), attack.Script{
			Symbols: func(m *attack.Member) []int32 { return []int32{int32(i), 1, -2} },
		}))
	}
	real := joins(t, s.dir, s.token.String())
	for i, done := range others {
		if end := watchdog.Recv(t, "the job's end", done, s.String, real.String); len(end.outcomes) != 2 || end.outcomes[0] != attack.Committed || end.outcomes[1] != attack.Committed {
			t.Errorf("device %d: %+v", i, end)
		}
	}
	if code := real.exit(); code != 0 {
		t.Errorf("the real device ended with %d: %s", code, real)
	}
	if code := s.exit(); code != 0 {
		t.Errorf("the coordinator ended with %d: %s", code, s)
	}
}

// honest devices that take part until the job is over.
func honest(t *testing.T, s *target, n int) (done []<-chan ended) {
	t.Helper()
	for range n {
		done = append(done, takesPart(t, attack.NewDevice(s.token), attack.Script{}))
	}
	return done
}

// outlives checks that the coordinator has come to its job's end, and that honest
// devices, a shard of them at least, were in its rounds. One that a busy machine has
// kept for longer than a deadline may have missed them.
func (s *target) outlives(t *testing.T, done []<-chan ended) {
	t.Helper()
	committed := 0
	for i, d := range done {
		end := watchdog.Recv(t, "the job's end for an honest device", d, s.String)
		if slices.Contains(end.outcomes, attack.Committed) {
			committed++
		}
		if !errors.Is(end.err, attack.ErrFinished) {
			t.Errorf("honest device %d: %v, %v", i, end.outcomes, end.err)
		}
	}
	if committed < 3 {
		t.Errorf("%d of %d honest devices were in a round\n%s", committed, len(done), s)
	}
	if code := s.exit(); code != 0 {
		t.Errorf("the coordinator ended with %d: %s", code, s)
	}
}

// silentAt says nothing in a turn.
func silentAt(turn int) attack.Script {
	return attack.Script{Say: func(at int, _ *attack.Member, honest []byte) [][]byte {
		if at == turn {
			return nil
		}
		return [][]byte{honest}
	}}
}

// insteadOf sends something else in a turn.
func insteadOf(turn int, other func(m *attack.Member, honest []byte) [][]byte) attack.Script {
	return attack.Script{Say: func(at int, m *attack.Member, honest []byte) [][]byte {
		if at == turn {
			return other(m, honest)
		}
		return [][]byte{honest}
	}}
}

// changed is a message with one byte of it turned over, from the end.
func changed(b []byte, fromEnd int) []byte {
	b = bytes.Clone(b)
	b[len(b)-1-fromEnd] ^= 1
	return b
}

// A device that is silent in a turn, one for each of the five and in one round, costs
// it a deadline and nothing else. A machine that is too slow for these loses rounds,
// and the job goes on.
func TestHostileSilentInEachTurn(t *testing.T) {
	t.Parallel() // it waits for deadlines
	const quick = "deadlines: {key: 2s, share: 2s, collect: 2s, confirm: 2s, unmask: 2s, min: 60s, grace: 3s}"
	s := serves(t, 1, "cohort: {population: 11, floor: 3}\n"+quick)
	for turn := attack.Advertise; turn <= attack.Reveal; turn++ {
		takesPart(t, attack.NewDevice(s.token), silentAt(turn))
	}
	s.outlives(t, honest(t, s, 6))
}

// Devices that say something else than the protocol has, in one round: each is out of
// it, or of the coordinator, and the round is the others'.
func TestHostileTurns(t *testing.T) {
	t.Parallel() // it waits for deadlines
	garbage := bytes.Repeat([]byte{0xff}, 100)
	attacks := map[string]struct {
		script attack.Script
		in     bool // its vector is in the sum before it does what it does
	}{
		"garbage for keys":         {insteadOf(attack.Advertise, func(*attack.Member, []byte) [][]byte { return [][]byte{garbage} }), false},
		"unsigned keys":            {insteadOf(attack.Advertise, func(_ *attack.Member, b []byte) [][]byte { return [][]byte{changed(b, 150)} }), false},
		"keys nobody vouches for":  {insteadOf(attack.Advertise, func(_ *attack.Member, b []byte) [][]byte { return [][]byte{changed(b, 0)} }), false},
		"two sets of keys":         {insteadOf(attack.Advertise, twice), true},
		"garbage for shares":       {insteadOf(attack.Shares, func(*attack.Member, []byte) [][]byte { return [][]byte{garbage} }), false},
		"shares of another roster": {insteadOf(attack.Shares, func(_ *attack.Member, b []byte) [][]byte { return [][]byte{otherRoster(b)} }), false},
		"commitments: no points":   {insteadOf(attack.Shares, noPoints), false},
		"a vector too short":       {insteadOf(attack.Masked, func(_ *attack.Member, b []byte) [][]byte { return [][]byte{b[:len(b)-9]} }), false},
		"a vector too long":        {insteadOf(attack.Masked, func(_ *attack.Member, b []byte) [][]byte { return [][]byte{append(bytes.Clone(b), 0)} }), false},
		"a vector of garbage":      {insteadOf(attack.Masked, func(_ *attack.Member, b []byte) [][]byte { return [][]byte{make([]byte, len(b))} }), false},
		"another's confirmation":   {insteadOf(attack.Confirm, func(m *attack.Member, _ []byte) [][]byte { return [][]byte{attack.Encode(m.Confirm(m.U2, m.Set(0)))} }), true},
		"garbage revealed":         {insteadOf(attack.Reveal, func(*attack.Member, []byte) [][]byte { return [][]byte{garbage} }), true},
		"wrong shares revealed": {insteadOf(attack.Reveal, func(_ *attack.Member, b []byte) [][]byte {
			b = bytes.Clone(b)
			for i := range 32 * 8 {
				b[len(b)-1-i] &= 0x0f // scalars still
				b[len(b)-1-i] ^= 5
			}
			return [][]byte{b}
		}), true},
	}
	n := len(attacks) + 14
	s := serves(t, 1, fmt.Sprintf("cohort: {population: %d, floor: 3}", n))
	fates := map[string]<-chan ended{}
	for name, a := range attacks {
		fates[name] = takesPart(t, attack.NewDevice(s.token), a.script)
	}
	s.outlives(t, honest(t, s, 14))
	for name, done := range fates {
		end := watchdog.Recv(t, name, done, s.String)
		if in := len(end.outcomes) > 0 && end.outcomes[0] == attack.Committed; in && !attacks[name].in {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

func twice(m *attack.Member, honest []byte) [][]byte {
	other := bytes.Clone(honest)
	other[len(other)-1] ^= 1
	return [][]byte{honest, other}
}

// otherRoster changes R: its place is behind the array's head, the tag and the head
// of a string of 32 bytes.
func otherRoster(b []byte) []byte {
	b = bytes.Clone(b)
	b[4] ^= 1
	return b
}

// noPoints sends commitments that no scalar leads to.
func noPoints(_ *attack.Member, honest []byte) [][]byte {
	a, err := attack.DecodeArray(honest, 4)
	if err != nil {
		panic(err) // our own message
	}
	commitments := bytes.Clone(a[2].([]byte))
	for i := range commitments {
		commitments[i] = 0
		if i%32 == 0 {
			commitments[i] = 2 // no point of the curve has this y
		}
	}
	return [][]byte{attack.Encode(attack.Array{a[0], a[1], commitments, a[3]})}
}

// A dealer of garbage costs the shard that it is in one round, and is found out.
func TestHostileDealerFromTheDocument(t *testing.T) {
	s := serves(t, 1, "cohort: {population: 5, floor: 3}")
	takesPart(t, attack.NewDevice(s.token), attack.Script{
		Spoil: func(_ int, pair []byte) { clear(pair) },
	})
	s.outlives(t, honest(t, s, 4))
	s.says(`excluded=true`)
}

// What a handshake may not hold ends it, with a reason, and costs the coordinator
// nothing.
func TestHostileHandshakesOfDevices(t *testing.T) {
	t.Parallel() // it waits for deadlines
	s := serves(t, 1, "enrolment: {secret: a secret of the test}\ncohort: {population: 6, floor: 3}")
	ctx := watchdog.Context(t)
	victim := attack.NewDevice(s.token)
	join(t, victim)
	stolen := bytes.Clone(victim.Session)
	t.Cleanup(victim.Close)

	connected := func(then func(d *attack.Device) error) func(d *attack.Device) error {
		return func(d *attack.Device) error {
			if _, _, err := d.Connect(ctx); err != nil {
				return err
			}
			if err := then(d); err != nil {
				return err
			}
			return d.Refusal(ctx)
		}
	}
	forged := func(forge func(enrol attack.Array)) func(d *attack.Device) error {
		return func(d *attack.Device) error { d.Forge = forge; return d.Join(ctx) }
	}
	for name, a := range map[string]struct {
		code uint64
		play func(d *attack.Device) error
	}{
		"versions of tomorrow":   {100, func(d *attack.Device) error { d.Versions = [2]uint64{900, 901}; return d.Join(ctx) }},
		"versions backwards":     {104, func(d *attack.Device) error { d.Versions = [2]uint64{10, 1}; return d.Join(ctx) }},
		"wrong secret":           {101, func(d *attack.Device) error { d.Token.Secret = []byte("another secret of it"); return d.Join(ctx) }},
		"no secret":              {101, func(d *attack.Device) error { d.Token.Secret = nil; return d.Join(ctx) }},
		"no signature":           {102, forged(func(e attack.Array) { e[2] = make([]byte, 64) })},
		"another's identity":     {101, forged(func(e attack.Array) { e[0] = []byte(victim.Identity.Public().(ed25519.PublicKey)) })},
		"signed for TLS":         {102, forged(func(e attack.Array) { e[5] = 1 })},
		"signed for a page":      {102, forged(func(e attack.Array) { e[5] = 2 })},
		"a channel that is none": {104, forged(func(e attack.Array) { e[5] = 3 })},
		"a session of 33 bytes":  {104, forged(func(e attack.Array) { e[3] = make([]byte, 33) })},
		"a session slipped in":   {102, forged(func(e attack.Array) { e[3] = stolen })},
		"hello again": {104, connected(func(d *attack.Device) error {
			return d.Send(ctx, attack.Hello, attack.Array{10, 10, make([]byte, 32), ""})
		})},
		"the coordinator's frame": {104, connected(func(d *attack.Device) error {
			return d.Send(ctx, attack.Welcome, attack.Array{10, make([]byte, 32), make([]byte, 32), false})
		})},
		"a kind that is none":     {104, connected(func(d *attack.Device) error { return d.SendRaw(ctx, []byte{99, 0x80}) })},
		"nothing":                 {104, connected(func(d *attack.Device) error { return d.SendRaw(ctx, nil) })},
		"text":                    {104, connected(func(d *attack.Device) error { return d.SendText(ctx, "hello") })},
		"ready without enrolment": {104, connected(func(d *attack.Device) error { return d.Send(ctx, attack.Ready, attack.Array{}) })},
		"an array without end":    {104, connected(func(d *attack.Device) error { return d.SendRaw(ctx, []byte{attack.Enrol, 0x9f, 0xff}) })},
		"four billion elements": {104, connected(func(d *attack.Device) error {
			return d.SendRaw(ctx, []byte{attack.Enrol, 0x9a, 0xff, 0xff, 0xff, 0xff})
		})},
		"not the shortest form": {104, connected(func(d *attack.Device) error { return d.SendRaw(ctx, []byte{attack.Ready, 0x98, 0}) })},
		"arrays in arrays": {104, connected(func(d *attack.Device) error {
			return d.SendRaw(ctx, append([]byte{attack.Enrol}, bytes.Repeat([]byte{0x81}, 4000)...))
		})},
		"a frame over its limit": {104, connected(func(d *attack.Device) error {
			return d.SendRaw(ctx, append([]byte{attack.Ready}, make([]byte, 1<<20)...))
		})},
		"a frame over every limit": {104, connected(func(d *attack.Device) error { return d.SendRaw(ctx, make([]byte, 2<<20)) })},
	} {
		d := attack.NewDevice(s.token)
		err := a.play(d)
		d.Close()
		refused := new(attack.SessionError)
		switch errors.As(err, &refused) {
		case true:
			if refused.Code != a.code {
				t.Errorf("%s: refused with %v, code %d expected", name, err, a.code)
			}
		default:
			if err == nil || a.code != 0 {
				t.Errorf("%s: %v, code %d expected", name, err, a.code)
			}
		}
	}

	// A stolen session opens nothing to another identity.
	thief := attack.NewDevice(s.token)
	thief.Session = stolen
	join(t, thief)
	t.Cleanup(thief.Close)
	if thief.Resumed {
		t.Error("another identity resumed a stolen session")
	}

	// What comes in pieces is one message.
	d := attack.NewDevice(s.token)
	join(t, d)
	t.Cleanup(d.Close)
	if err := d.SendSplit(ctx, append([]byte{attack.Ready}, attack.Encode(attack.Array{})...)); err != nil {
		t.Fatal(err)
	}
	done := make(chan ended, 1)
	go func() {
		plan, err := d.Plan(ctx)
		if err != nil {
			done <- ended{err: err}
			return
		}
		outcome, _, err := d.Take(ctx, plan, attack.Script{})
		done <- ended{[]uint64{outcome}, err}
	}()
	others := honest(t, s, 3)
	if end := watchdog.Recv(t, "the round's end", done, s.String); end.err != nil || end.outcomes[0] != attack.Committed {
		t.Errorf("ready in fragments: %+v", end)
	}
	s.outlives(t, others)
}

// Frames that no turn asks for, and updates that come in pieces that do not fit: who
// sends them is out of the round, or is not heard, and the others go on.
func TestHostileFramesOfDevices(t *testing.T) {
	t.Parallel() // it waits for deadlines
	ctx := watchdog.Context(t)
	turn := func(round uint64, number int, b []byte) func(d *attack.Device) error {
		return func(d *attack.Device) error {
			return d.Send(ctx, attack.Turn, attack.Array{round, number, b, 0})
		}
	}
	update := func(total, at uint64, b []byte) func(d *attack.Device) error {
		return func(d *attack.Device) error {
			return d.Send(ctx, attack.Update, attack.Array{uint64(1), total, at, b})
		}
	}
	attacks := map[string]struct {
		before int // the turn
		send   func(d *attack.Device) error
		in     bool // it is in the sum for all that
	}{
		"a reveal for keys":            {attack.Advertise, turn(1, 5, []byte{1}), true},
		"a turn of tomorrow's round":   {attack.Shares, turn(2, 2, []byte{1}), true},
		"a turn of no round":           {attack.Shares, turn(0, 2, []byte{1}), true},
		"a sixth turn":                 {attack.Shares, turn(1, 6, []byte{1}), false},
		"keys of a hundred kilobytes":  {attack.Advertise, turn(1, 1, make([]byte, 100<<10)), false},
		"shares of a mebibyte":         {attack.Shares, turn(1, 2, make([]byte, 1<<20)), false},
		"a vector as a turn":           {attack.Masked, turn(1, 3, []byte{1}), false},
		"an update before its turn":    {attack.Advertise, update(100, 0, []byte{1}), true},
		"an update of a gigabyte":      {attack.Masked, update(1<<30, 0, []byte{1}), false},
		"an update that begins behind": {attack.Masked, update(900, 5, []byte{1}), false},
		"an update of nothing":         {attack.Masked, update(0, 0, nil), false},
		"a refusal, and on":            {attack.Masked, func(d *attack.Device) error { return d.Send(ctx, attack.Refuse, attack.Array{1, 304, "no"}) }, false},
		"ready, in mid-round":          {attack.Masked, func(d *attack.Device) error { return d.Send(ctx, attack.Ready, attack.Array{}) }, true},
		"a welcome": {attack.Masked, func(d *attack.Device) error {
			return d.Send(ctx, attack.Welcome, attack.Array{10, make([]byte, 32), make([]byte, 32), false})
		}, false},
		"an end": {attack.Masked, func(d *attack.Device) error { return d.Send(ctx, attack.Error, attack.Array{104, "\x1b[2Jbye", 0}) }, false},
	}
	s := serves(t, 1, fmt.Sprintf("cohort: {population: %d, floor: 3}\nwire: {uplink: int4}\ndeadlines: {key: 2m, share: 2m, collect: 2m, confirm: 2m, unmask: 2m, reconnect: 1s}", len(attacks)+14))
	fates := map[string]<-chan ended{}
	for name, a := range attacks {
		d := attack.NewDevice(s.token)
		fates[name] = takesPart(t, d, attack.Script{Before: func(turn int) error {
			if turn == a.before {
				return a.send(d)
			}
			return nil
		}})
	}

	done := honest(t, s, 14)
	s.outlives(t, done)
	for name, fate := range fates {
		end := watchdog.Recv(t, name, fate, s.String)
		if in := len(end.outcomes) > 0 && end.outcomes[0] == attack.Committed; in != attacks[name].in {
			t.Errorf("%s: %v, %v\n%s", name, end.outcomes, end.err, s)
		}
	}
	if strings.Contains(s.String(), "\x1b") {
		t.Error("a device's text reached the terminal as it was")
	}
}

// A device whose connection breaks when its vector is due comes back with its session,
// as section 6 says, and is in the sum; another that holds a copy of that session and
// no key to its identity gets nothing of it, in mid-round.
func TestHostileResumption(t *testing.T) {
	t.Parallel() // it waits for deadlines
	s := serves(t, 1, "deadlines: {reconnect: 2m}\nwire: {uplink: int5}")
	ctx := watchdog.Context(t)
	d := attack.NewDevice(s.token)
	broken := false
	back := takesPart(t, d, attack.Script{Before: func(turn int) error {
		if turn != attack.Masked || broken {
			return nil
		}
		broken = true
		d.Close()
		thief := attack.NewDevice(s.token)
		defer func() { thief.Close() }()
		thief.Session = bytes.Clone(d.Session)
		if err := thief.Join(ctx); err != nil || thief.Resumed {
			return fmt.Errorf("a stolen session in mid-round: resumed %v, %w", thief.Resumed, err)
		}
		for {
			err := d.Join(ctx)
			if refused := new(attack.SessionError); errors.As(err, &refused) && refused.Code == 103 {
				continue // the old connection is not seen to be broken yet
			}
			if err == nil && !d.Resumed {
				err = errors.New("the session is not resumed")
			}
			if err != nil {
				return err
			}
			return attack.ErrSilent // it is asked again
		}
	}})
	others := honest(t, s, 3)
	if end := watchdog.Recv(t, "the end of who came back", back, s.String); len(end.outcomes) == 0 || end.outcomes[0] != attack.Committed {
		t.Errorf("a device that came back in mid-round: %v, %v\n%s", end.outcomes, end.err, s)
	}
	s.outlives(t, others)
}
