package edge

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/wasm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a coordinator played by a test: it speaks the protocol step by step
// as the test asks, honestly or not.
type house struct {
	t         *testing.T
	token     wire.Token
	job       *wire.Job
	jobBytes  []byte
	task      [32]byte
	layout    *model.Layout
	authority ed25519.PrivateKey
	dials     chan *pipe // coordinator's ends
	counted   float64    // decoded clipping count of the last round
	outcome   uint8      // what devices are told of a round; 0: that it was committed

	mu      sync.Mutex
	blobs   map[string][]byte // by path
	gets    []string          // Range headers of blob requests
	said    []string          // what went over all connections
	devices []*device
}

// note keeps what a test that stalls prints.
func (h *house) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, fmt.Sprintf(format, args...))
}

// sides are the coordinator that the test plays, and its devices.
func (h *house) sides() []watchdog.Side {
	return []watchdog.Side{
		func() string {
			h.mu.Lock()
			defer h.mu.Unlock()
			return "coordinator: " + strings.Join(h.said, ", ")
		},
		func() string {
			h.mu.Lock()
			devices := slices.Clone(h.devices)
			h.mu.Unlock()
			var b strings.Builder
			for i, d := range devices {
				d.mu.Lock()
				fmt.Fprintf(&b, "device %d after %d events", i, len(d.events))
				for _, e := range d.events[max(0, len(d.events)-3):] {
					fmt.Fprintf(&b, " %+v", e)
				}
				d.mu.Unlock()
			}
			return b.String()
		},
	}
}

var testLabels = []string{"one", "two"}

// tinyBase is an encoder of a few hundred weights.
func tinyBase(t testing.TB) *model.Base { return tiny.Base(t, 16, 2, 8) }

func newHouse(t *testing.T) *house {
	t.Helper()
	base := tinyBase(t)
	blob, err := base.Blob()
	if err != nil {
		t.Fatal(err)
	}
	_, authority, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{
		t: t, token: wire.Token{URL: "https://coordinator.test", Secret: []byte("secret")},
		authority: authority, dials: make(chan *pipe, 64), blobs: map[string][]byte{},
	}
	h.job = &wire.Job{
		Instance: [16]byte{1}, Name: "test", Labels: testLabels, Base: h.blob(blob),
		RankMin: 1, RankMax: 4, Alpha: 4, Sequence: 8, Announced: training.Announced{Batch: 2, Optimizer: "sgd"}, Rounds: 3,
		Uplink: "fixed16", ShardMax: 8, ShardFloor: 3, RosterKey: [32]byte(authority.Public().(ed25519.PublicKey)),
		Privacy:   wire.Privacy{Private: true, SamplingRate: 1, NoiseMultiplier: 1, Delta: 1e-6, Budget: 2, Population: 10},
		Published: wire.Published{Tokenizer: sha256.Sum256(base.Tokenizer)},
		Deadlines: wire.Deadlines{Gather: 1000, Key: 1000, Share: 1000, Collect: 1000, Confirm: 1000, Unmask: 1000},
	}
	h.layout, err = model.NewLayout(base.Config, model.Method{RMax: 4, Alpha: 4}, len(testLabels))
	if err != nil {
		t.Fatal(err)
	}
	h.announce()
	return h
}

// announce takes the job as it now stands.
func (h *house) announce() {
	var err error
	if h.jobBytes, err = h.job.AppendBinary(nil); err != nil {
		h.t.Fatal(err)
	}
	h.task = wire.TaskID(h.jobBytes)
}

// blob puts data where devices fetch it.
func (h *house) blob(data []byte) wire.Blob {
	b := wire.Blob{SHA256: sha256.Sum256(data), Size: uint64(len(data))}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blobs[fmt.Sprintf("%s%x", wire.BlobPath, b.SHA256)] = data
	return b
}

// RoundTrip serves blobs in memory.
func (h *house) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	data, ok := h.blobs[r.URL.Path]
	h.gets = append(h.gets, r.Header.Get("Range"))
	h.mu.Unlock()
	w := httptest.NewRecorder()
	if ok {
		w.Header().Set("ETag", `"`+strings.TrimPrefix(r.URL.Path, wire.BlobPath)+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	} else {
		http.NotFound(w, r)
	}
	return w.Result(), nil
}

func (h *house) plan(round uint64) *wire.Plan {
	return &wire.Plan{Task: h.task, Round: round, Rank: 2, Values: uint32(h.layout.Size(2)), Seed: make([]byte, 8),
		Rotation: [32]byte{byte(round)}, ClipNorm: 1, Steps: 3, Rate: 0.1}
}

func examples(n int) *dataset.Set {
	s := &dataset.Set{Labels: testLabels}
	for i := range n {
		s.Examples = append(s.Examples, dataset.Example{Text: strings.Repeat("fox ", i%3+1), Label: i % 2})
	}
	return s
}

// config is a device's configuration that reaches the house.
func (h *house) config(tr Trainer) Config {
	h.t.Helper()
	key, err := NewIdentity()
	if err != nil {
		h.t.Fatal(err)
	}
	policy := TrustingPolicy() // the tests of what it refuses have one of their own
	policy.Shard, policy.Steps = 3, 100
	return Config{
		Token: h.token.String(), Identity: key, Policy: &policy, Data: Examples(examples(5)), Trainer: tr,
		HTTP:       httpClient(h),
		BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond,
		Dial: func(context.Context, string) (Conn, error) {
			device, coordinator := newPipe()
			h.dials <- coordinator
			return device, nil
		},
	}
}

// device is a running client.
type device struct {
	h      *house
	done   chan error
	cancel context.CancelFunc
	mu     sync.Mutex
	events []Event
}

func (h *house) start(cfg Config) *device {
	ctx, cancel := context.WithCancel(context.Background())
	d := &device{h: h, done: make(chan error, 1), cancel: cancel}
	cfg.Progress = func(e Event) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.events = append(d.events, e)
	}
	h.mu.Lock()
	h.devices = append(h.devices, d)
	h.mu.Unlock()
	go func() { d.done <- Run(ctx, cfg) }()
	h.t.Cleanup(func() { cancel(); watchdog.Recv(h.t, "the device's end", d.done, h.sides()...) })
	return d
}

// wait returns what Run returned.
func (d *device) wait(t *testing.T) error {
	t.Helper()
	err := watchdog.Recv(t, "what Run returns", d.done, d.h.sides()...)
	d.done <- err // for the cleanup
	return err
}

func (d *device) saw(s State) (Event, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range slices.Backward(d.events) {
		if e.State == s {
			return e, true
		}
	}
	return Event{}, false
}

// peer is the house's end of a session.
type peer struct {
	h       *house
	pipe    *pipe
	id      secagg.ID
	session []byte
	enrol   *wire.Enrol
	ready   bool // the device has said so
}

func (p *peer) send(m wire.Message) {
	p.h.t.Helper()
	frame, err := wire.Append(nil, m)
	if err != nil {
		p.h.t.Fatal(err)
	}
	p.h.note("sends %v to %x", m.Kind(), p.id[:2])
	ctx, cancel := context.WithTimeout(context.Background(), watchdog.Silence)
	defer cancel()
	if err := p.pipe.Write(ctx, frame); errors.Is(err, context.DeadlineExceeded) {
		p.h.t.Fatalf("the device does not read: %v", err)
	}
}

// next is the device's next message; that it is ready is noted on the way.
func (p *peer) next() wire.Message {
	p.h.t.Helper()
	for {
		m := p.read()
		if _, ready := m.(*wire.Ready); !ready {
			return m
		}
		p.ready = true
	}
}

// read is whatever the device sends next.
func (p *peer) read() wire.Message {
	p.h.t.Helper()
	type read struct {
		frame []byte
		err   error
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got := make(chan read, 1)
	go func() {
		frame, err := p.pipe.Read(ctx)
		got <- read{frame, err}
	}()
	r := watchdog.Recv(p.h.t, "the device's next message", got, p.h.sides()...)
	if r.err != nil {
		p.h.t.Fatalf("no message from the device: %v", r.err)
	}
	m, err := wire.Decode(r.frame, wire.FromDevice)
	if err != nil {
		p.h.t.Fatal(err)
	}
	p.h.note("gets %v from %x", m.Kind(), p.id[:2])
	return m
}

func want[M wire.Message](p *peer) M {
	p.h.t.Helper()
	m, ok := p.next().(M)
	if !ok {
		p.h.t.Fatalf("device sent %#v, %T expected", m, *new(M))
	}
	return m
}

// dialed takes the next connection.
func (h *house) dialed() *peer {
	h.t.Helper()
	return &peer{h: h, pipe: watchdog.Recv(h.t, "a device's connection", h.dials, h.sides()...)}
}

// accept takes the next connection as far as the challenge's answer.
func (h *house) accept() (p *peer, hello *wire.Hello, welcome *wire.Welcome) {
	h.t.Helper()
	p = h.dialed()
	hello = want[*wire.Hello](p)
	welcome = &wire.Welcome{Version: wire.Version, Challenge: [32]byte{1, 2, 3}, Task: h.task}
	p.send(welcome)
	p.enrol = want[*wire.Enrol](p)
	p.id = p.enrol.Identity
	if !ed25519.Verify(p.id[:], wire.EnrolBytes(hello, welcome, p.id, p.enrol.Channel, nil, p.enrol.Session), p.enrol.Signature[:]) {
		h.t.Fatal("signature over the challenge is wrong")
	}
	if p.enrol.Fused != wasm.Fuses() {
		h.t.Errorf("device says fused %v, this machine %v", p.enrol.Fused, wasm.Fuses())
	}
	if p.enrol.Proof != wire.DeviceProof(h.token.Secret, hello, welcome, p.id) {
		h.t.Fatal("device does not know the secret")
	}
	return p, hello, welcome
}

// admit takes the next connection into a session.
func (h *house) admit(resumed bool) *peer {
	h.t.Helper()
	p, hello, welcome := h.accept()
	p.session = make([]byte, 32)
	rand.Read(p.session)
	p.send(&wire.Enrolled{
		Proof: wire.CoordinatorProof(h.token.Secret, hello, welcome, p.id, h.task), Session: p.session, Resumed: resumed, Job: h.jobBytes,
	})
	return p
}

// assign sends a plan and returns its bytes.
func (p *peer) assign(plan *wire.Plan, patches ...wire.Patch) []byte {
	p.h.t.Helper()
	b, err := plan.AppendBinary(nil)
	if err != nil {
		p.h.t.Fatal(err)
	}
	if !p.ready {
		if m, ready := p.read().(*wire.Ready); !ready {
			p.h.t.Fatalf("device sent %#v, it is not ready", m)
		}
		p.ready = true
	}
	p.send(&wire.Assignment{Plan: b, Patches: patches, Millis: 1000})
	return b
}

// turnFrom reads a turn of the device into a secagg message.
func turnFrom[T any, P interface {
	*T
	UnmarshalBinary([]byte) error
}](p *peer, number uint8) P {
	p.h.t.Helper()
	m := want[*wire.Turn](p)
	if m.Number != number {
		p.h.t.Fatalf("turn %d, %d expected", m.Number, number)
	}
	v := P(new(T))
	if err := v.UnmarshalBinary(m.Payload); err != nil {
		p.h.t.Fatal(err)
	}
	return v
}

func (p *peer) turn(round uint64, number uint8, m interface {
	AppendBinary([]byte) ([]byte, error)
}) *wire.Turn {
	p.h.t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		p.h.t.Fatal(err)
	}
	t := &wire.Turn{Round: round, Number: number, Payload: b, Millis: 1000}
	p.send(t)
	return t
}

// update gathers the chunks of turn 3, from what as holds already.
func (p *peer) update(as *wire.Assembly) *secagg.Masked {
	p.h.t.Helper()
	for {
		if b, whole := as.Bytes(); whole {
			m := new(secagg.Masked)
			if err := m.UnmarshalBinary(b); err != nil {
				p.h.t.Fatal(err)
			}
			return m
		}
		if err := as.Add(want[*wire.Update](p)); err != nil {
			p.h.t.Fatal(err)
		}
	}
}

// masking is the coordinator's own derivation, written apart from the edge's.
func (h *house) masking(plan *wire.Plan, planBytes []byte) (*quant.Lattice, secagg.Config, secagg.Hash) {
	h.t.Helper()
	scheme, err := quant.Lookup(h.job.Uplink)
	if err != nil {
		h.t.Fatal(err)
	}
	l, err := quant.NewLattice(scheme, int(plan.Values), plan.ClipNorm, plan.Rotation)
	if err != nil {
		h.t.Fatal(err)
	}
	providers := max(1, int(h.job.Providers))
	width, err := quant.Width(scheme, providers*int(h.job.ShardMax))
	if err != nil {
		h.t.Fatal(err)
	}
	cfg := secagg.Config{Dim: l.D() + int(plan.CountCoordinates), Width: width, MaxSymbol: providers * int(l.MaxSymbol()), ShardMax: int(h.job.ShardMax), ShardMin: int(h.job.ShardFloor),
		Suite: secagg.SuiteX25519, Authority: h.job.RosterKey, Identified: h.job.Identified, Logged: h.job.LogKey != [32]byte{}, Dealt: h.job.Dealt}
	if v := plan.OwnNoise; v > 0 { // docs/PROTOCOL.md, section 7, in floats
		b2 := l.B2() + int64(plan.CountCoordinates)*int64(plan.CountSymbol)*int64(plan.CountSymbol)
		sigma := v * math.Sqrt(float64(b2))
		tail := math.Sqrt(2 * math.Ln2 * (math.Floor(math.Log2(2000*float64(cfg.Dim)*float64(h.job.Rounds)/h.job.Privacy.Delta)) + 1))
		cfg.MaxSum = cfg.ShardMax*cfg.MaxSymbol + int(math.Ceil(tail*sigma*math.Sqrt(float64(cfg.ShardMax))))
		cfg.MaxSymbol += int(math.Ceil(tail * sigma))
		cfg.Width = max(width, bits.Len(uint(2*cfg.MaxSum)))
	}
	return l, cfg, secagg.PlanHash(hex.EncodeToString(h.task[:]), plan.Round, cfg, planBytes)
}

// constant is a trainer whose update is the same value everywhere.
type constant struct {
	value float32
	gate  chan struct{} // not nil: training waits for it
	tasks chan Task     // not nil: gets each task
}

func (c *constant) Train(ctx context.Context, t Task) ([]float32, error) {
	if c.tasks != nil {
		c.tasks <- t
	}
	if c.gate != nil {
		select {
		case <-c.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if c.value > 1e30 {
		return nil, ErrDiverged
	}
	delta := make([]float32, len(t.Start))
	for i := range delta {
		delta[i] = c.value
	}
	return delta, nil
}

func (*constant) Close() error { return nil }
