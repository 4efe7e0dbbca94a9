//go:build !js

package edge

import (
	"bytes"
	"context"
	"crypto/rand"
	"iter"
	"math/bits"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/nightly"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/secagg"
)

// The tests of this file change every field of everything that a coordinator says, one
// at a time, to what is extreme (attack.Mutants), and say it to a device with an owner's
// limits. It must end with a sentence, refuse with a code, or do what an honest round
// asks for within those limits: never panic, hang, or take memory for what is claimed.

// exposed is a device before a coordinator that says anything.
type exposed struct {
	t      *testing.T
	h      *house
	cancel context.CancelFunc
	done   chan error
	away   chan struct{} // filled when it is not connected and waits
	p      *peer
	probes uint64
}

// expose starts a device; its connection is taken.
func expose(t *testing.T, h *house, policy Policy) *exposed {
	t.Helper()
	ctx, cancel := context.WithCancel(watchdog.Context(t))
	x := &exposed{t: t, h: h, cancel: cancel, done: make(chan error, 1), away: make(chan struct{}, 1)}
	cfg := h.config(&constant{value: 0.01})
	policy.Silent = false // a second for each field; moments are TestHostileTimer's
	cfg.Policy = &policy
	cfg.Progress = func(e Event) {
		if e.State == Backoff {
			select {
			case x.away <- struct{}{}:
			default:
			}
		}
	}
	go func() { x.done <- Run(ctx, cfg) }()
	return x
}

// end stops the device; the next is a fresh one.
func (x *exposed) end() {
	x.t.Helper()
	x.cancel()
	watchdog.Recv(x.t, "the device's end", x.done, x.h.sides()...)
	for {
		select {
		case p := <-x.h.dials:
			p.Close()
		default:
			x.h.mu.Lock()
			x.h.said, x.h.gets = nil, nil
			x.h.mu.Unlock()
			return
		}
	}
}

// heard is what a device made of a frame.
type heard struct {
	frames []wire.Message
	err    error // what Run returned
	ended  bool
	gone   bool // it is not connected any more, and comes again
}

// hears says a frame, as its bytes are, and waits until the device has dealt with it:
// it has answered what was asked next, it has ended, or it waits to connect again.
func (x *exposed) hears(frame []byte, inSession bool) (got heard) {
	x.t.Helper()
	ctx := watchdog.Context(x.t)
	_ = x.p.pipe.Write(ctx, frame) // it may have hung up
	probe := &wire.Resume{Round: 1<<61 + x.probes}
	x.probes++
	if inSession {
		b, err := wire.Append(nil, probe)
		ok(x.t, err)
		_ = x.p.pipe.Write(ctx, b)
	}
	for {
		b, err := x.p.pipe.Read(ctx)
		if ctx.Err() != nil {
			x.t.Fatal("the device says nothing more")
		}
		if err != nil {
			break
		}
		m, err := wire.Decode(b, wire.FromDevice)
		if err != nil {
			x.t.Fatalf("the device sent %x: %v", b[:min(len(b), 80)], err)
		}
		if r, ok := m.(*wire.Refuse); ok && inSession && r.Round == probe.Round {
			return got
		}
		got.frames = append(got.frames, m)
		if !inSession {
			return got
		}
	}
	select {
	case got.err = <-x.done:
		x.done <- got.err // for end
		got.ended = true
	case <-x.away:
		got.gone = true
	case <-ctx.Done():
		x.t.Fatal("the device neither ends nor waits to connect again")
	}
	return got
}

// campaign counts what came of mutants, and checks what must be so of all.
type campaign struct {
	t                         *testing.T
	ended, refused, went, all int
	taken                     uint64 // bytes allocated before the present one
}

// sparse is how many mutants stand for one that is played with -short: the race detector,
// for which all of them take minutes, sees the same goroutines in each.
const sparse = 6

// indices are places in arrays, of which a mutant of one kind is refused alike.
var indices = regexp.MustCompile(`\[[0-9]+\]`)

// mutants are those of an item that are played.
func (c *campaign) mutants(item attack.Array) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		n := 0
		for name, body := range attack.Mutants(item) {
			if n++; testing.Short() && n%sparse != 0 {
				continue
			}
			if !yield(name, body) {
				return
			}
		}
	}
}

func (c *campaign) begin() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.taken = m.TotalAlloc
}

// judge checks a device's answer, and tells whether it goes on.
func (c *campaign) judge(name string, got heard) (on bool) {
	c.t.Helper()
	c.all++
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.TotalAlloc-c.taken > 64<<20 {
		c.t.Errorf("%s: %d MiB were allocated", name, (m.TotalAlloc-c.taken)>>20)
	}
	on = true
	for _, f := range got.frames {
		switch f := f.(type) {
		case *wire.Refuse:
			on = false
			if f.Code < 300 || f.Code > 399 || f.Reason == "" || strings.Contains(f.Reason, "fox") || strings.ContainsFunc(f.Reason, func(r rune) bool { return r < ' ' || r > '~' }) {
				c.t.Errorf("%s: refused with %+v", name, f)
			}
		case *wire.Error:
			on = false
		}
	}
	switch {
	case got.ended && got.err != nil:
		words := Explain(got.err)
		if strings.TrimSpace(words) == "" || strings.Contains(words, "fox") || strings.ContainsAny(words, "\x1b\a\r\x00\u202e") {
			c.t.Errorf("%s: the owner reads %q", name, words)
		}
		c.ended++
		return false
	case !on, got.gone:
		c.refused++
		return false
	default:
		c.went++
	}
	return on
}

// covers fails a campaign that has lost its point.
func (c *campaign) covers(all, on int) {
	c.t.Helper()
	if testing.Short() {
		all, on = all/sparse-1, min(on, 1)
	}
	c.t.Logf("%d mutants: %d ended the device, %d were refused, %d were as good as any", c.all, c.ended, c.refused, c.went)
	if c.all < all || c.ended+c.refused < all/2 || c.went < on {
		c.t.Errorf("%d mutants, %d ended or refused, %d as good as any; %d, half of them and %d expected", c.all, c.ended+c.refused, c.went, all, on)
	}
}

// items is a message's array.
func items(t *testing.T, m wire.Message) attack.Array {
	t.Helper()
	frame, err := wire.Append(nil, m)
	ok(t, err)
	a, err := attack.DecodeArray(frame[1:], 0)
	ok(t, err)
	return a
}

func framed(kind wire.Kind, body []byte) []byte { return append([]byte{byte(kind)}, body...) }

// Every field of the announced job: a device is ready for none that passes its owner's
// limits, and for one that it can read.
func TestHostileFieldsOfTheJob(t *testing.T) {
	h := production(t)
	whole, err := attack.DecodeArray(h.jobBytes, attack.JobLog+1)
	ok(t, err)
	c, inRound := &campaign{t: t}, &campaign{t: t}
	for name, job := range c.mutants(whole) {
		c.begin()
		inRound.begin()
		h.jobBytes, h.task = job, wire.TaskID(job)
		x := expose(t, h, *central())
		var hello *wire.Hello
		var welcome *wire.Welcome
		x.p, hello, welcome = h.accept()
		frame := framed(wire.KindEnrolled, attack.Encode(attack.Array{
			proofBytes(wire.CoordinatorProof(h.token.Secret, hello, welcome, x.p.id, h.task)), make([]byte, 32), false, job, nil, attack.Array{0, nil}}))
		// Until it is ready, or will not be; a base that is not there is asked for again and again.
		base := strings.HasPrefix(name, "[4]")
		got := x.hears(frame, base)
		if c.judge(name, got) && !base {
			a, err := attack.DecodeArray(job, 0)
			if err != nil {
				t.Errorf("%s: ready for what is not a job: %v", name, err)
			} else {
				lawfulJob(t, name, attack.Frame{Body: a})
				plan, err := h.plan(1).AppendBinary(nil)
				ok(t, err)
				inRound.judge(name, x.hears(framed(wire.KindAssignment, attack.Encode(attack.Array{plan, nil, 1000, attack.Array{0, nil}})), true))
			}
		}
		x.end()
	}
	c.covers(400, 20)
	t.Logf("their rounds: %+v", *inRound)
	if inRound.went == 0 {
		t.Error("no job of those that were joined had a round")
	}
}

func proofBytes(p [32]byte) []byte { return p[:] }

// lawfulJob holds a job that a device with DefaultPolicy has joined against what that
// promises an owner.
func lawfulJob(t *testing.T, name string, j attack.Frame) {
	t.Helper()
	privacy := attack.Frame{}
	privacy.Body, _ = j.Body[attack.JobPrivacy].(attack.Array)
	noise, _ := privacy.Body[2].(float64)
	switch {
	case len(j.Body) != attack.JobBounds+1,
		j.Uint(attack.JobShardFloor) < 8, j.Uint(attack.JobShardMax) < j.Uint(attack.JobShardFloor), j.Uint(attack.JobCorrupt) < 50_000,
		j.Uint(attack.JobBits) < 40, j.Body[attack.JobSemiHonest] != false, j.Uint(attack.JobRankMax) > 32,
		j.Uint(attack.JobBatch) > 64 || j.Uint(attack.JobBatch) < 1, j.Uint(attack.JobRounds) > 10_000 || j.Uint(attack.JobRounds) < 1,
		!slices.Contains([]string{"tern", "int3", "int4", "int5", "nf4"}, j.Text(attack.JobUplink)),
		privacy.Body[0] != true, noise <= 0, j.Uint(attack.JobSequence) < 1:
		t.Errorf("%s: the device joined %v", name, j.Body)
	}
}

// Every field of a round's plan, and of what it comes in.
func TestHostileFieldsOfThePlan(t *testing.T) {
	h := newHouse(t)
	plan := h.plan(7)
	plan.Programs = []wire.Program{{Host: "amd64", Blob: wire.Blob{SHA256: [32]byte{1}, Size: 100}}}
	seeded, err := plan.AppendBinary(nil)
	ok(t, err)
	plan = h.plan(7)
	plan.Seed, plan.CountCoordinates, plan.CountSymbol = nil, 4, 100
	plan.Slice = wire.Slice{Blob: wire.Blob{SHA256: [32]byte{2}, Size: 100}, Digest: [32]byte{3}, Format: "bf16", Codec: "zstd"}
	sliced, err := plan.AppendBinary(nil)
	ok(t, err)
	patches := []wire.Patch{{From: [32]byte{4}, Blob: wire.Blob{SHA256: [32]byte{5}, Size: 100}}}
	policy := LocalPolicy()
	policy.Uplinks = []string{"fixed16"}
	for _, as := range []*wire.Assignment{{Plan: seeded, Millis: 1000}, {Plan: sliced, Patches: patches, Millis: 1000}} {
		c := &campaign{t: t}
		for name, body := range c.mutants(items(t, as)) {
			c.begin()
			x := expose(t, h, policy)
			x.p = h.admit(false)
			x.ready()
			got := x.hears(framed(wire.KindAssignment, body), true)
			c.judge(name, got)
			for _, f := range got.frames {
				switch f := f.(type) {
				case *wire.Turn:
					h.lawfulPlan(name, body, f.Round)
				case *wire.Refuse, *wire.Error:
				default:
					t.Errorf("%s: the device says %#v", name, f)
				}
			}
			x.end()
		}
		c.covers(400, 20)
	}
}

// ready waits until the device is.
func (x *exposed) ready() {
	x.t.Helper()
	if m, ready := x.p.read().(*wire.Ready); !ready {
		x.t.Fatalf("device sent %#v, it is not ready", m)
	}
}

// lawfulPlan holds a plan that a device has sent keys for against job and policy.
func (h *house) lawfulPlan(name string, assignment []byte, round uint64) {
	h.t.Helper()
	a, err := attack.DecodeArray(assignment, 1)
	ok(h.t, err)
	bytesOf, _ := a[0].([]byte)
	p, err := attack.DecodeArray(bytesOf, attack.PlanPrograms+1)
	ok(h.t, err)
	f := attack.Frame{Body: p}
	clip, _ := p[attack.PlanClip].(float64)
	rate, _ := p[attack.PlanRate].(float64)
	rank := int(f.Uint(attack.PlanRank))
	if !bytes.Equal(f.Bytes(attack.PlanTask), h.task[:]) || f.Uint(attack.PlanRound) != round || f.Uint(attack.PlanVersion) >= h.job.Rounds ||
		rank < int(h.job.RankMin) || rank > int(h.job.RankMax) || int(f.Uint(attack.PlanValues)) != h.layout.Size(rank) ||
		!(clip > 0 && clip <= 10) || f.Uint(attack.PlanSteps) > 100 || f.Uint(attack.PlanSteps) < 1 || !(rate > 0) || f.Uint(attack.PlanCount) > 255 {
		h.t.Errorf("%s: the device sent keys for %v", name, p)
	}
}

// Every field of what stands around rounds, and of the handshake.
func TestHostileFieldsOfASession(t *testing.T) {
	h := newHouse(t)
	c := &campaign{t: t}
	model := wire.Model{Rank: 2, Adapter: wire.Blob{Size: 9}, Programs: []wire.Program{{Host: "amd64", Blob: wire.Blob{Size: 9}}}, Archive: wire.Blob{Size: 9}}
	for _, m := range []wire.Message{
		&wire.Wait{RetryMillis: 1, Reason: "because"}, &wire.Wait{RetryMillis: 1, Disconnect: true, Reason: "because"},
		&wire.Resume{Round: 1, Held: 1, Received: 5}, &wire.Outcome{Round: 1, Result: wire.OutcomeDropped, Reason: "because", RetryMillis: 5},
		&wire.Finished{Version: 3, Reason: "done", Model: model}, &wire.Error{Code: 202, Text: "busy", RetryMillis: 1},
		&wire.Turn{Round: 1, Number: 1, Payload: []byte("payload"), Millis: 10},
	} {
		for name, body := range c.mutants(items(t, m)) {
			name = m.Kind().String() + name
			c.begin()
			x := expose(t, h, LocalPolicy().with("fixed16"))
			x.p = h.admit(false)
			x.ready()
			got := x.hears(framed(m.Kind(), body), true)
			c.judge(name, got)
			for _, f := range got.frames {
				switch f.(type) {
				case *wire.Refuse, *wire.Error, *wire.Ready:
				default:
					t.Errorf("%s: the device says %#v", name, f)
				}
			}
			x.end()
		}
	}
	c.covers(600, 50)

	c = &campaign{t: t}
	for name, body := range c.mutants(items(t, &wire.Welcome{Version: wire.Version, Challenge: [32]byte{1}, Task: h.task})) {
		c.begin()
		x := expose(t, h, LocalPolicy().with("fixed16"))
		x.p = h.dialed()
		want[*wire.Hello](x.p)
		got := x.hears(framed(wire.KindWelcome, body), false)
		if c.judge("welcome"+name, got) && len(got.frames) > 0 {
			if e, ok := got.frames[0].(*wire.Enrol); !ok || e.Channel != wire.ChannelPlain {
				t.Errorf("welcome%s: the device says %#v", name, got.frames[0])
			}
		}
		x.end()
	}
	c.covers(100, 5)

	c = &campaign{t: t}
	for name, body := range c.mutants(items(t, &wire.Enrolled{Proof: [32]byte{1}, Session: make([]byte, 32), Job: []byte("job")})) {
		c.begin()
		x := expose(t, h, LocalPolicy().with("fixed16"))
		x.p, _, _ = h.accept()
		if c.judge("enrolled"+name, x.hears(framed(wire.KindEnrolled, body), false)) {
			t.Errorf("enrolled%s: a coordinator that does not know the secret is believed", name)
		}
		x.end()
	}
	c.covers(60, 0)
}

// with takes one uplink.
func (p Policy) with(uplink string) Policy { p.Uplinks = []string{uplink}; return p }

// Every field of the four turns of a round: of what a device does not answer with a
// refusal it makes what the honest message, or another honest one, would have led to.
func TestHostileFieldsOfTheTurns(t *testing.T) {
	h := newHouse(t)
	for turn, least := range map[uint8]int{1: 300, 2: 80, 3: 80, 4: 80} {
		c := &campaign{t: t}
		x := expose(t, h, LocalPolicy().with("fixed16"))
		var chosen []int
		few, n := nightly.Few{Each: 2}, 0
		for name := range attack.Mutants(x.round(turn).due) {
			// A roster's entries are alike: of all but the first every third mutant.
			another := turn == 1 && strings.HasPrefix(name, "[3][") && !strings.HasPrefix(name, "[3][0]")
			if (!another || n%3 == 0) && (!testing.Short() || n%sparse == 0) && few.Take(indices.ReplaceAllString(name, "[]")) {
				chosen = append(chosen, n)
			}
			n++
		}
		x.end()
		for _, k := range chosen {
			x := expose(t, h, LocalPolicy().with("fixed16"))
			r := x.round(turn)
			name, body := mutant(r.due, k)
			frame := framed(wire.KindTurn, attack.Encode(attack.Array{7, int(turn), body, 1000}))
			c.begin()
			got := x.hears(frame, true)
			c.judge(name, got)
			for _, f := range got.frames {
				r.lawful(turn, name, body, f)
			}
			x.end()
		}
		if !nightly.All() {
			least /= 4
		}
		c.covers(least, 0)
	}
}

// mutant is the one of a number, which changes the same field in all items of a form.
func mutant(item attack.Array, k int) (name string, body []byte) {
	for name, body := range attack.Mutants(item) {
		if k--; k < 0 {
			return name, body
		}
	}
	return "", nil
}

// part is a device's round with two honest others, up to a turn of the coordinator's.
type part struct {
	x      *exposed
	due    attack.Array // the turn's payload
	roster *secagg.Roster
	signs  []byte // of turn 4, by place
}

func (x *exposed) round(turn uint8) *part {
	x.t.Helper()
	h, t := x.h, x.t
	p := h.admit(false)
	x.p = p
	plan := h.plan(7)
	planBytes := p.assign(plan)
	lattice, cfg, hash := h.masking(plan, planBytes)
	k, err := secagg.NewKeying(cfg, hash, h.authority)
	ok(t, err)
	ok(t, k.Add(p.id, turnFrom[secagg.Advertise](p, 1)))
	others := addPeers(t, k, cfg, hash, 2)
	shards, err := k.Cut(rand.Reader)
	ok(t, err)
	s := shards[0]
	r := &part{x: x, roster: s.Roster()}
	payload := func(m interface {
		AppendBinary([]byte) ([]byte, error)
	}) *part {
		b, err := m.AppendBinary(nil)
		ok(t, err)
		r.due, err = attack.DecodeArray(b, 3)
		ok(t, err)
		return r
	}
	if turn == 1 {
		return payload(s.Roster())
	}
	p.turn(7, 1, s.Roster())
	ok(t, s.Add(p.id, turnFrom[secagg.Shares](p, 2)))
	for id, c := range others {
		m, err := c.Share(s.Roster())
		ok(t, err)
		ok(t, s.Add(id, m))
	}
	ok(t, s.CloseSharing())
	if turn == 2 {
		return payload(s.Delivery(p.id))
	}
	p.turn(7, 2, s.Delivery(p.id))
	first := want[*wire.Update](p)
	as, err := wire.NewAssembly(7, first.Total)
	ok(t, err)
	ok(t, as.Add(first))
	ok(t, s.Add(p.id, p.update(as)))
	for id, c := range others {
		ok(t, c.Deliver(s.Delivery(id)))
		m, err := c.Mask(make([]int32, lattice.D()))
		ok(t, err)
		ok(t, s.Add(id, m))
	}
	survivors, err := s.CloseCollecting()
	ok(t, err)
	if turn == 3 {
		return payload(survivors)
	}
	p.turn(7, 3, survivors)
	ok(t, s.Add(p.id, turnFrom[secagg.Confirmation](p, 4)))
	for id, c := range others {
		m, err := c.Confirm(survivors)
		ok(t, err)
		ok(t, s.Add(id, m))
	}
	confirmations, err := s.CloseConfirming()
	ok(t, err)
	payload(confirmations)
	r.signs = slices.Clone(r.due[3].([]byte))
	return r
}

// lawful holds what the device says after a turn that was changed against what it may.
func (r *part) lawful(turn uint8, name string, body []byte, f wire.Message) {
	t := r.x.t
	t.Helper()
	switch f := f.(type) {
	case *wire.Refuse, *wire.Error, *wire.Ready:
		return
	case *wire.Turn:
		if f.Number != turn+1 || turn == 2 {
			t.Errorf("turn %d%s: answered with turn %d", turn, name, f.Number)
		}
	case *wire.Update:
		if turn != 2 {
			t.Errorf("turn %d%s: a vector", turn, name)
		}
	default:
		t.Errorf("turn %d%s: answered with %#v", turn, name, f)
	}
	a, err := attack.DecodeArray(body, 4)
	if err != nil {
		t.Errorf("turn %d%s: answered, and it is not an item: %v", turn, name, err)
		return
	}
	of := attack.Frame{Body: a}
	const all, threshold = 0b111, 2
	set := func(i int) int {
		if b := of.Bytes(i); len(b) == 1 && b[0]&^all == 0 {
			return bits.OnesCount8(b[0])
		}
		return -1
	}
	bound := bytes.Equal(of.Bytes(1), r.due[1].([]byte))
	switch turn {
	case 1: // its number is all of a roster that no signature covers
		if !bound || !bytes.Equal(attack.Encode(of.Body[3]), attack.Encode(r.due[3])) {
			t.Errorf("roster%s: shares for %v", name, a)
		}
	case 2:
		if !bound || set(2) < threshold {
			t.Errorf("delivery%s: a vector over %v", name, of.Bytes(2))
		}
	case 3:
		if !bound || !bytes.Equal(of.Bytes(2), r.due[2].([]byte)) || set(3) < threshold {
			t.Errorf("survivors%s: confirmed %v", name, a)
		}
	case 4:
		if !bound || set(2) < threshold || len(of.Bytes(3)) != 64*set(2) {
			t.Errorf("confirmations%s: revealed for %v", name, a)
			return
		}
		signs := of.Bytes(3)
		for i := range 3 {
			if of.Bytes(2)[0]>>i&1 == 1 {
				if !bytes.Equal(signs[:64], r.signs[64*i:][:64]) {
					t.Errorf("confirmations%s: revealed for a signature that nobody made", name)
				}
				signs = signs[64:]
			}
		}
	}
}
