package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// liar is a coordinator that the test plays.
type liar struct {
	*attack.Coordinator
	t     *testing.T
	url   string
	token string
	plans attack.Array // of a real coordinator's first round
	round uint64
}

// truth is what a real coordinator says of a job of rank 1 and of its first round,
// with the blobs that go with it: a lie needs all of it but one thing.
type truth struct {
	job, plan attack.Array
	blobs     map[string][]byte
}

func learn(t *testing.T, more ...string) truth {
	t.Helper()
	return serves(t, 50, strings.Join(append(more, "cohort: {population: 3, floor: 3}"), "\n")).learned()
}

// learned is what the coordinator says to three devices; it ends with that.
func (s *target) learned() truth {
	t := s.t
	t.Helper()
	ctx := watchdog.Context(t)
	var first *attack.Device
	for range 3 {
		first = attack.NewDevice(s.token)
		join(t, first)
		t.Cleanup(first.Close)
		if err := first.Send(ctx, attack.Ready, attack.Array{}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := first.Plan(ctx)
	if err != nil {
		t.Fatal(err)
	}
	truth := truth{blobs: map[string][]byte{}}
	if truth.job, err = attack.DecodeArray(first.JobBytes, attack.JobLog+1); err != nil {
		t.Fatal(err)
	}
	if truth.plan, err = attack.DecodeArray(b, attack.PlanHead+1); err != nil {
		t.Fatal(err)
	}
	sums := [][]byte{truth.job[attack.JobBase].(attack.Array)[0].([]byte)}
	for _, program := range truth.plan[attack.PlanPrograms].(attack.Array) {
		sums = append(sums, program.(attack.Array)[1].(attack.Array)[0].([]byte))
	}
	for _, sum := range sums {
		if truth.blobs[string(sum)], err = first.Fetch(ctx, sum); err != nil {
			t.Fatal(err)
		}
	}
	s.stop()
	return truth
}

// lies starts a coordinator whose job is changed.
func (tr truth) lies(t *testing.T, change func(job attack.Array)) *liar {
	t.Helper()
	job := slices.Clone(tr.job)
	if change != nil {
		change(job)
	}
	l := &liar{Coordinator: attack.NewCoordinator(job), t: t, plans: tr.plan}
	for sum, b := range tr.blobs {
		l.Put([]byte(sum), b)
	}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	l.url = server.URL
	l.token = l.Token(server.URL).String()
	return l
}

// plan is the next round's, changed.
func (l *liar) plan(change func(p attack.Array)) []byte {
	l.round++
	p := slices.Clone(l.plans)
	p[attack.PlanTask], p[attack.PlanRound], p[attack.PlanHead] = l.Token(l.url).Task, l.round, l.Head()
	if change != nil {
		change(p)
	}
	return attack.Encode(p)
}

// session waits for a device that is ready.
func (l *liar) session(ctx context.Context, device *ours) *attack.Session {
	l.t.Helper()
	s := watchdog.Recv(l.t, "a device", l.Sessions, device.String)
	l.t.Cleanup(s.End)
	if _, err := s.Wait(ctx, attack.Ready); err != nil {
		l.t.Fatalf("%v\n%s", err, device)
	}
	return s
}

// A coordinator written from the document alone, and the two peers that it has made
// up, end a round with a real device, and know its update: what section 10 of the
// document says of invented peers is true, and what it needs of a coordinator is
// there. A job promises its rounds, and no more are to be had.
func TestHostileCoordinatorIsHonestFirst(t *testing.T) {
	const rounds = 1
	truth := learn(t)
	l := truth.lies(t, func(job attack.Array) { job[attack.JobRounds] = rounds })
	ctx := watchdog.Context(t)
	device := joins(t, t.TempDir(), l.token)
	s := l.session(ctx, device)
	sum := l.whole(ctx, s, l.plan(nil))
	if !slices.ContainsFunc(sum, func(x int32) bool { return x != 0 }) {
		t.Error("the update is all zeros")
	}
	for _, x := range sum {
		if x < -12 || x > 12 {
			t.Fatalf("a symbol of %d: it is not unmasked", x)
		}
	}
	if err := s.Send(ctx, attack.Outcome, attack.Array{l.round, attack.Committed, "", 0}); err != nil {
		t.Fatal(err)
	}
	if err := s.Assign(ctx, l.plan(nil)); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Wait(ctx, attack.Refuse); err != nil || f.Uint(1) != 300 {
		t.Errorf("a round beyond what was announced: %v, %v", f, err)
	}
	if code := device.exit(); code == 0 || !strings.Contains(device.String(), "rounds that it announced") {
		t.Errorf("ended with %d: %s", code, device)
	}
}

// whole plays a round to its end and returns the victim's vector.
func (l *liar) whole(ctx context.Context, s *attack.Session, plan []byte) []int32 {
	l.t.Helper()
	sh := l.shard(ctx, s, plan)
	all := sh.Peers[0].All()
	l.must(sh.Masked(ctx, all))
	l.must(s.Say(ctx, sh.Round, attack.Masked, sh.Survivors(all, all)))
	signature := l.confirmed(ctx, s)
	l.must(s.Say(ctx, sh.Round, attack.Confirm, sh.Confirmations(signature, all, all, 3)))
	reveal, err := s.Receive(ctx, attack.Reveal)
	l.must(err)
	for _, m := range sh.Peers {
		m.U3 = all
	}
	vector, err := sh.Unmask(reveal)
	l.must(err)
	return vector
}

func (l *liar) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// shard assigns a plan and goes on to the victim's shares.
func (l *liar) shard(ctx context.Context, s *attack.Session, plan []byte) *attack.Shard {
	l.t.Helper()
	sh, err := attack.NewShard(ctx, l.Coordinator, s, plan, 2)
	l.must(err)
	l.must(sh.Keyed(ctx))
	return sh
}

// confirmed hears the victim's signature.
func (l *liar) confirmed(ctx context.Context, s *attack.Session) []byte {
	l.t.Helper()
	b, err := s.Receive(ctx, attack.Confirm)
	l.must(err)
	a, err := attack.DecodeArray(b, 3)
	l.must(err)
	return a[2].([]byte)
}

// Lies within a round, one round each to one device: it leaves the round with a code
// and a text that says nothing of its data, and is there for the next.
func TestHostileRoundsOfACoordinator(t *testing.T) {
	const plan, floor, protocol, policy = 300, 301, 306, 310
	truth := learn(t)
	l := truth.lies(t, func(job attack.Array) { job[attack.JobRounds] = 1000 })
	ctx := watchdog.Context(t)
	device := joins(t, t.TempDir(), l.token)
	s := l.session(ctx, device)

	assigned := func(change func(p attack.Array)) func() { return func() { l.must(s.Assign(ctx, l.plan(change))) } }
	rostered := func(change func(sh *attack.Shard) []byte) func() {
		return func() {
			sh, err := attack.NewShard(ctx, l.Coordinator, s, l.plan(nil), 2)
			l.must(err)
			l.must(s.Say(ctx, sh.Round, attack.Advertise, change(sh)))
		}
	}
	entries := func(change func(entries []attack.Array) []attack.Array) func() {
		return rostered(func(sh *attack.Shard) []byte { return sh.Remade(change) })
	}
	after := func(turns int, lie func(sh *attack.Shard, all []byte)) func() {
		return func() {
			sh := l.shard(ctx, s, l.plan(nil))
			all := sh.Peers[0].All()
			if turns > attack.Shares {
				l.must(sh.Masked(ctx, all))
			}
			if turns > attack.Masked {
				l.must(s.Say(ctx, sh.Round, attack.Masked, sh.Survivors(all, all)))
				l.confirmed(ctx, s)
			}
			lie(sh, all)
		}
	}
	say := func(sh *attack.Shard, turn int, b []byte) { l.must(s.Say(ctx, sh.Round, turn, b)) }

	for _, lie := range []struct {
		name string
		code uint64
		play func()
	}{
		{"another job's plan", plan, assigned(func(p attack.Array) { p[attack.PlanTask] = make([]byte, 32) })},
		{"another rank", plan, assigned(func(p attack.Array) { p[attack.PlanRank] = 2 })},
		{"another length", plan, assigned(func(p attack.Array) { p[attack.PlanValues] = 7 })},
		{"a round beyond the last", plan, assigned(func(p attack.Array) { p[attack.PlanVersion] = 1000 })},
		{"more steps than the owner allows", policy, assigned(func(p attack.Array) { p[attack.PlanSteps] = 101 })},
		{"a wider norm than the owner allows", policy, assigned(func(p attack.Array) { p[attack.PlanClip] = 1000.5 })},
		{"a clipping count beyond the scheme's symbols", plan, assigned(func(p attack.Array) { p[attack.PlanCounts], p[attack.PlanCount] = 4, 13 })},
		{"a round's number again", plan, func() { l.round -= 4; l.must(s.Assign(ctx, l.plan(nil))) }},
		{"two plans for one round", plan, func() {
			_, err := attack.NewShard(ctx, l.Coordinator, s, l.plan(nil), 2)
			l.must(err)
			l.round--
			l.must(s.Assign(ctx, l.plan(func(p attack.Array) { p[attack.PlanRate] = 0.25 })))
		}},

		{"a roster that is none", protocol, rostered(func(*attack.Shard) []byte { return []byte{0xff} })},
		{"a roster of another round", protocol, rostered(func(sh *attack.Shard) []byte { return changed(sh.Roster(), len(sh.Roster())-5) })},
		{"a shard below the floor", floor, entries(func(e []attack.Array) []attack.Array { return e[:2] })},
		{"a peer twice", protocol, entries(func(e []attack.Array) []attack.Array { return []attack.Array{e[0], e[1], e[1], e[2]} })},
		{"peers out of order", protocol, entries(func(e []attack.Array) []attack.Array { return []attack.Array{e[1], e[0], e[2]} })},
		{"a roster without this device", protocol, func() {
			sh, err := attack.NewShard(ctx, l.Coordinator, s, l.plan(nil), 3)
			l.must(err)
			l.must(s.Say(ctx, sh.Round, attack.Advertise, sh.Remade(func(e []attack.Array) []attack.Array {
				return slices.DeleteFunc(e, func(e attack.Array) bool { return bytes.Equal(e[0].([]byte), sh.Mine()) })
			})))
		}},
		{"this device's keys exchanged", protocol, rostered(func(sh *attack.Shard) []byte {
			return sh.Remade(func(e []attack.Array) []attack.Array {
				for _, e := range e {
					if bytes.Equal(e[0].([]byte), sh.Mine()) {
						e[1] = bytes.Repeat([]byte{9}, 32)
					}
				}
				return e
			})
		})},
		{"a peer that nobody certified", protocol, entries(func(e []attack.Array) []attack.Array {
			for _, e := range e {
				e[4] = make([]byte, 64)
			}
			return e
		})},
		{"a peer whose keys it has not signed", protocol, entries(func(e []attack.Array) []attack.Array {
			for _, e := range e {
				e[3] = changed(e[3].([]byte), 40)
			}
			return e
		})},
		{"a mask key of low order", protocol, entries(func(e []attack.Array) []attack.Array {
			for _, e := range e {
				e[1] = make([]byte, 32)
			}
			return e
		})},
		{"peers that were shown another plan", protocol, func() {
			own := l.plan(nil)
			l.round--
			other := l.plan(func(p attack.Array) { p[attack.PlanRate] = 0.25 })
			sh, err := attack.NewSplitShard(ctx, l.Coordinator, s, own, other, 2)
			l.must(err)
			l.must(s.Say(ctx, sh.Round, attack.Advertise, sh.Roster()))
		}},

		{"a delivery that is none", protocol, after(attack.Shares, func(sh *attack.Shard, _ []byte) { say(sh, attack.Shares, []byte{0x80}) })},
		{"a delivery below the threshold", protocol, after(attack.Shares, func(sh *attack.Shard, _ []byte) { say(sh, attack.Shares, sh.Delivery(sh.Peers[0].Set(sh.Me()))) })},
		{"a delivery without this device", protocol, after(attack.Shares, func(sh *attack.Shard, all []byte) { say(sh, attack.Shares, sh.Delivery(without(all, sh.Me()))) })},
		{"survivors before a delivery", protocol, after(attack.Shares, func(sh *attack.Shard, all []byte) { say(sh, attack.Masked, sh.Survivors(all, all)) })},
		{"another roster behind the first", protocol, after(attack.Shares, func(sh *attack.Shard, _ []byte) {
			say(sh, attack.Advertise, sh.Remade(func(e []attack.Array) []attack.Array { e[0][4] = changed(e[0][4].([]byte), 1); return e }))
		})},

		{"a second vector, over another set", protocol, after(attack.Masked, func(sh *attack.Shard, all []byte) {
			say(sh, attack.Shares, sh.Delivery(without(all, sh.Peers[0].Me())))
		})},
		{"survivors below the threshold", protocol, after(attack.Masked, func(sh *attack.Shard, all []byte) {
			say(sh, attack.Masked, sh.Survivors(all, sh.Peers[0].Set(sh.Me())))
		})},
		{"survivors without this device", protocol, after(attack.Masked, func(sh *attack.Shard, all []byte) {
			say(sh, attack.Masked, sh.Survivors(all, without(all, sh.Me())))
		})},
		{"another U2 than was masked over", protocol, after(attack.Masked, func(sh *attack.Shard, all []byte) {
			two := without(all, sh.Peers[0].Me())
			say(sh, attack.Masked, sh.Survivors(two, two))
		})},
		{"confirmations before survivors", protocol, after(attack.Masked, func(sh *attack.Shard, all []byte) {
			say(sh, attack.Confirm, sh.Confirmations(make([]byte, 64), all, all, 3))
		})},

		{"survivors again, others", protocol, after(attack.Confirm, func(sh *attack.Shard, all []byte) {
			say(sh, attack.Masked, sh.Survivors(all, without(all, sh.Peers[0].Me())))
		})},
		{"too few confirmations", protocol, after(attack.Confirm, func(sh *attack.Shard, all []byte) {
			say(sh, attack.Confirm, sh.Confirmations(make([]byte, 64), all, all, 1))
		})},
		{"this device's confirmation forged", protocol, after(attack.Confirm, func(sh *attack.Shard, all []byte) {
			say(sh, attack.Confirm, sh.Confirmations(make([]byte, 64), all, all, 3))
		})},
		{"peers that confirmed another story", protocol, after(attack.Confirm, func(sh *attack.Shard, all []byte) {
			say(sh, attack.Confirm, sh.Confirmations(make([]byte, 64), all, without(all, sh.Peers[0].Me()), 3))
		})},
		{"a fifth turn", protocol, after(attack.Confirm, func(sh *attack.Shard, all []byte) { say(sh, attack.Reveal, sh.Survivors(all, all)) })},
	} {
		lie.play()
		f, err := s.Wait(ctx, attack.Refuse)
		if err != nil || f.Uint(0) != l.round || f.Uint(1) != lie.code || strings.Contains(f.Text(2), "fox") {
			t.Fatalf("%s: %v, %v; code %d expected\n%s", lie.name, f, err, lie.code, device)
		}
		l.round += 3 // what was used up stays so
	}

	// Once it has revealed, nothing more is revealed; and after all of it the device
	// takes part as ever.
	sh := l.shard(ctx, s, l.plan(nil))
	all := sh.Peers[0].All()
	l.must(sh.Masked(ctx, all))
	say(sh, attack.Masked, sh.Survivors(all, all))
	signature := l.confirmed(ctx, s)
	say(sh, attack.Confirm, sh.Confirmations(signature, all, all, 3))
	if _, err := s.Receive(ctx, attack.Reveal); err != nil {
		t.Fatal(err)
	}
	say(sh, attack.Confirm, sh.Confirmations(signature, all, all, 2))
	if f, err := s.Wait(ctx, attack.Refuse); err != nil || f.Uint(1) != protocol {
		t.Errorf("asked to reveal again: %v, %v", f, err)
	}
	l.whole(ctx, s, l.plan(nil))
	l.must(s.Send(ctx, attack.Outcome, attack.Array{l.round, attack.Committed, "", 0}))
	l.must(s.Send(ctx, attack.Finished, attack.Array{1000, "done", attack.Array{0, attack.Array{make([]byte, 32), 0}, nil, attack.Array{make([]byte, 32), 0}}}))
	if code := device.exit(); code != 0 {
		t.Errorf("ended with %d: %s", code, device)
	}
}

// without is a set less one of its members.
func without(set []byte, i int) []byte {
	set = bytes.Clone(set)
	set[i/8] &^= 1 << (i % 8)
	return set
}

// What a coordinator announces: a device ends with a sentence for its owner, and
// nothing of its data has left it.
func TestHostileAnnouncements(t *testing.T) {
	truth := learn(t)
	privacy := func(job attack.Array, i int, v any) {
		p := slices.Clone(job[attack.JobPrivacy].(attack.Array))
		p[i] = v
		job[attack.JobPrivacy] = p
	}
	inHandshake := func(lie func(kind byte, body attack.Array)) func(l *liar) {
		return func(l *liar) { l.Lie = lie }
	}
	for name, lie := range map[string]struct {
		words string
		job   func(job attack.Array)
		more  func(l *liar)
	}{
		"a shard of two":            {words: "shard", job: func(j attack.Array) { j[attack.JobShardFloor] = 2 }},
		"a grid that is fine":       {words: "uplink", job: func(j attack.Array) { j[attack.JobUplink] = "fixed32" }},
		"no mask at all":            {words: "uplink", job: func(j attack.Array) { j[attack.JobUplink] = "f32" }},
		"endless rounds":            {words: "rounds", job: func(j attack.Array) { j[attack.JobRounds] = 20_000 }},
		"a trusting threshold":      {words: "semi", job: func(j attack.Array) { j[attack.JobSemiHonest] = true }},
		"rank 400":                  {words: "rank", job: func(j attack.Array) { j[attack.JobRankMax] = 400 }},
		"large batches":             {words: "batch", job: func(j attack.Array) { j[attack.JobBatch] = 65 }},
		"a run that is not private": {words: "not private", job: func(j attack.Array) { privacy(j, 0, false) }},
		"sequences of one token":    {words: "sequences of 1 tokens", job: func(j attack.Array) { j[attack.JobSequence] = 1 }},
		"sequences of two tokens":   {words: "sequences of 2 tokens", job: func(j attack.Array) { j[attack.JobSequence] = 2 }},
		"an epsilon that is none":   {words: "negative", job: func(j attack.Array) { privacy(j, 4, -1.0) }},
		"labels of a thousand bytes": {words: "label", job: func(j attack.Array) {
			j[2] = attack.Array{strings.Repeat("x", 1000), "two"}
		}},
		"a job with a field more": {words: "malformed", more: func(l *liar) { l.Job = append(l.Job, 1); l.token = l.Token(l.url).String() }},
		"another job than the token's": {words: "another job", more: func(l *liar) {
			l.Job[attack.JobName] = "another"
		}},
		"another authority than the token's": {words: "another key", more: func(l *liar) {
			token := l.Token(l.url)
			token.Authority = make([]byte, 32)
			l.token = token.String()
		}},
		"a base of other bytes": {words: "hash", more: func(l *liar) {
			sum := l.Job[attack.JobBase].(attack.Array)[0].([]byte)
			b := bytes.Clone(truth.blobs[string(sum)])
			b[len(b)-1] ^= 1
			l.Put(sum, b)
		}},
		"a base that is longer than announced": {words: "more than", more: func(l *liar) {
			sum := l.Job[attack.JobBase].(attack.Array)[0].([]byte)
			l.Put(sum, append(bytes.Clone(truth.blobs[string(sum)]), 0))
		}},
		"a base without end": {words: "limit", job: func(j attack.Array) {
			j[attack.JobBase] = attack.Array{j[attack.JobBase].(attack.Array)[0], 1 << 32}
		}},
		"a base that is text": {words: "base", job: func(j attack.Array) {
			j[attack.JobBase] = attack.Array{attack.Sum([]byte("hello")), 5}
		}, more: func(l *liar) { l.Put(attack.Sum([]byte("hello")), []byte("hello")) }},
		"a proof of nothing": {words: "secret", more: inHandshake(func(kind byte, body attack.Array) {
			if kind == attack.Enrolled {
				body[0] = make([]byte, 32)
			}
		})},
		"versions of tomorrow": {words: "version", more: inHandshake(func(kind byte, body attack.Array) {
			if kind == attack.Welcome {
				body[0] = 77
			}
		})},
		"a session that is too short": {words: "session", more: inHandshake(func(kind byte, body attack.Array) {
			if kind == attack.Enrolled {
				body[1] = make([]byte, 15)
			}
		})},
		"a challenge that is too short": {words: "31 bytes", more: inHandshake(func(kind byte, body attack.Array) {
			if kind == attack.Welcome {
				body[1] = make([]byte, 31)
			}
		})},
		"elsewhere": {words: "Temporary Redirect", more: func(l *liar) {
			other := truth.lies(l.t, nil)
			l.Elsewhere = other.url
			l.t.Cleanup(func() {
				if asked := other.Asked(); len(asked) > 0 {
					l.t.Errorf("a redirect was followed: %q", asked)
				}
			})
		}},
		"the job of others, before joining": {words: "label", job: func(j attack.Array) { j[2] = attack.Array{"three", "four"} },
			more: func(l *liar) { l.Announces = true }},
	} {
		t.Run(name, func(t *testing.T) {
			l := truth.lies(t, lie.job)
			if lie.more != nil {
				lie.more(l)
			}
			device := joins(t, t.TempDir(), l.token)
			code := device.exit()
			if said := device.String(); code == 0 || !strings.Contains(said, lie.words) || strings.Contains(said, "fox") {
				t.Errorf("ended with %d, the word %q expected: %s", code, lie.words, said)
			}
			select {
			case s := <-l.Sessions: // it is ready for none of them
				ctx, stop := context.WithTimeout(watchdog.Context(t), time.Minute)
				defer stop()
				if f, err := s.Next(ctx); err == nil && f.Kind != attack.Error {
					t.Errorf("the device said %v", f)
				}
				s.End()
			default:
			}
		})
	}
}

// What a coordinator says reaches the owner's terminal as text.
func TestHostileWordsOfACoordinator(t *testing.T) {
	const evil = "\x1b]0;owned\a\x1b[2J\u202egnp\r\nall is well"
	truth := learn(t)
	l := truth.lies(t, func(job attack.Array) { job[attack.JobName] = evil })
	ctx := watchdog.Context(t)
	device := joins(t, t.TempDir(), l.token)
	s := l.session(ctx, device)
	l.must(s.Send(ctx, attack.Wait, attack.Array{1, false, evil}))
	l.must(s.Assign(ctx, l.plan(nil)))
	if _, err := s.Receive(ctx, attack.Advertise); err != nil {
		t.Fatal(err)
	}
	l.must(s.Send(ctx, attack.Outcome, attack.Array{l.round, attack.Abandoned, evil, 0}))
	l.must(s.Send(ctx, attack.Error, attack.Array{202, evil, 1}))
	s.End()
	s = l.session(ctx, device)
	l.must(s.Send(ctx, attack.Finished, attack.Array{0, evil, attack.Array{0, attack.Array{make([]byte, 32), 0}, nil, attack.Array{make([]byte, 32), 0}}}))
	if code := device.exit(); code != 0 {
		t.Errorf("ended with %d", code)
	}
	for _, said := range []string{device.String(), device.out.String()} {
		if strings.ContainsAny(said, "\x1b\a\r\u202e") || strings.Contains(said, "\nall is well") || !strings.Contains(said, "all is well") {
			t.Errorf("on the terminal: %q", said)
		}
	}
}

// A program of the coordinator's own, and a slice that is not what it was announced
// as, are not run; the device says so.
func TestHostileBlobsOfACoordinator(t *testing.T) {
	truth := learn(t)
	l := truth.lies(t, func(job attack.Array) { job[attack.JobRounds] = 1000 })
	ctx := watchdog.Context(t)
	device := joins(t, t.TempDir(), l.token)
	s := l.session(ctx, device)
	slice := func(size int, b []byte) func(p attack.Array) {
		blob := l.Blob(b)
		blob[1] = size
		return func(p attack.Array) {
			p[attack.PlanSeed] = nil
			p[attack.PlanSlice] = attack.Array{blob, make([]byte, 32), "bf16", "zstd"}
		}
	}
	for name, change := range map[string]func(p attack.Array){
		"a slice of other values":   slice(6, []byte("values")),
		"a slice that is longer":    slice(5, []byte("values")),
		"a slice that is shorter":   slice(7, []byte("values")),
		"a slice of four gigabytes": slice(1<<32, []byte("values")),
		"a bomb of zeros":           slice(len(bomb()), bomb()),
		"a slice that nobody has": func(p attack.Array) {
			slice(6, []byte("gone"))(p)
			p[attack.PlanSlice].(attack.Array)[0].(attack.Array)[0] = make([]byte, 32)
		},
		"a slice in a format that is none": func(p attack.Array) { slice(6, []byte("values"))(p); p[attack.PlanSlice].(attack.Array)[2] = "secret" },
	} {
		l.must(s.Assign(ctx, l.plan(change)))
		f, err := s.Next(ctx)
		if err == nil && f.Kind == attack.Turn { // its keys, before it has looked at the blob
			f, err = s.Next(ctx)
		}
		if err != nil || f.Kind != attack.Refuse || f.Uint(0) != l.round {
			t.Fatalf("%s: %v, %v\n%s", name, f, err, device)
		}
	}
	// A program that does the same and holds one section more.
	program := slices.Clone(truth.plan[attack.PlanPrograms].(attack.Array)[0].(attack.Array))
	var genuine []byte
	for _, b := range truth.blobs {
		if bytes.Equal(attack.Sum(b), program[1].(attack.Array)[0].([]byte)) {
			genuine = b
		}
	}
	program[1] = l.Blob(append(bytes.Clone(genuine), 0, 2, 1, 'x'))
	l.must(s.Assign(ctx, l.plan(func(p attack.Array) { p[attack.PlanPrograms] = attack.Array{program} })))
	if code := device.exit(); code == 0 || !strings.Contains(device.String(), "is not the one that its job says") {
		t.Errorf("a changed program: ended with %d: %s", code, device)
	}
}

// bomb is 64 MiB of zeros behind a slice's head, in a zstd frame of raw run blocks.
func bomb() []byte {
	b := []byte{0, 3, 3, 0x82, 0x05} // whole; bf16, zstd, 642 values
	b = append(b, 0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 4)
	for i := range 512 { // of 128 KiB each
		head := uint32(1<<17)<<3 | 1<<1
		if i == 511 {
			head |= 1
		}
		b = append(b, byte(head), byte(head>>8), byte(head>>16), 0)
	}
	return b
}
