package coordinator

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// player is a device whose every step a test can bend. It trains nothing: its
// update is delta.
type player struct {
	t       testing.TB
	token   wire.Token
	key     ed25519.PrivateKey
	http    *http.Client
	delta   func(n int) []float32 // default: zero
	unready bool                  // does not say that it is ready
	units   int                   // providers that contribute, each delta; default: 1
	agent   string                // what it says it is; default "player"

	// before is called ahead of each turn of a round with the message about to be
	// sent (for turn 3 the *wire.Upload); it may replace or drop it, or hang up.
	before func(p *player, turn int, m wire.Message) (send wire.Message, hangUp bool)

	roster func(plan *wire.Plan, r *secagg.Roster) // called with each roster

	mu       sync.Mutex
	conn     *websocket.Conn
	session  []byte
	task     []byte
	job      *wire.Job
	outcomes []uint8
	waits    int
	// waitedFor is why it was told to wait the last time.
	waitedFor string
	errs      []*wire.Error
	finished  *wire.Finished
	plans     []*wire.Plan
	patches   []wire.Patch // of the present plan

	shard int
	round uint64
	lost  uint64 // the round that this device has forgotten, as after a restart
	// begunAgain: it got the assignment of that round once more.
	begunAgain bool
	fused      bool
	pinged     func() // called at each ping, by anyone who reads
	client     *secagg.Client
	upload     *wire.Upload
	lat        *quant.Lattice
	plan       *wire.Plan
	sent       map[int][]byte
}

func newPlayer(t testing.TB, token wire.Token) *player {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &player{t: t, token: token, key: key, http: httpClient}
}

func (p *player) id() [32]byte { return [32]byte(p.key.Public().(ed25519.PublicKey)) }

// dial connects and enrols. The Enrolled answer, or the peer's error.
func (p *player) dial(ctx context.Context) error {
	conn, resp, err := websocket.Dial(ctx, p.token.Endpoint(), &websocket.DialOptions{HTTPClient: p.http,
		OnPingReceived: func(context.Context, []byte) bool {
			if p.pinged != nil {
				p.pinged()
			}
			return true
		}})
	if err != nil {
		return err
	}
	conn.SetReadLimit(wire.MaxFrame)
	p.conn = conn
	hello := &wire.Hello{MinVersion: wire.Version, MaxVersion: wire.Version, Agent: cmp.Or(p.agent, "player")}
	_, _ = rand.Read(hello.Nonce[:])
	if err := p.send(ctx, hello); err != nil {
		return err
	}
	m, err := p.receive(ctx)
	if err != nil {
		return err
	}
	welcome, ok := m.(*wire.Welcome)
	if !ok {
		return fmt.Errorf("welcome: got %T", m)
	}
	enrol := &wire.Enrol{Identity: p.id(), Session: p.session, Task: p.task, Fused: p.fused}
	var exporter []byte
	if resp.TLS != nil {
		enrol.Channel = wire.ChannelTLS
		if exporter, err = resp.TLS.ExportKeyingMaterial(wire.ExporterLabel, nil, 32); err != nil {
			return err
		}
	}
	enrol.Proof = wire.DeviceProof(p.token.Secret, hello, welcome, p.id())
	copy(enrol.Signature[:], ed25519.Sign(p.key, wire.EnrolBytes(hello, welcome, p.id(), enrol.Channel, exporter, p.session)))
	if err := p.send(ctx, enrol); err != nil {
		return err
	}
	if m, err = p.receive(ctx); err != nil {
		return err
	}
	enrolled, ok := m.(*wire.Enrolled)
	if !ok {
		return fmt.Errorf("enrolled: got %T", m)
	}
	if len(enrolled.Job) > 0 {
		if p.job, err = wire.ParseJob(enrolled.Job); err != nil {
			return err
		}
		task := wire.TaskID(enrolled.Job)
		p.task = task[:]
	}
	if !wire.EqualProof(enrolled.Proof, wire.CoordinatorProof(p.token.Secret, hello, welcome, p.id(), [32]byte(p.task))) {
		return errors.New("the coordinator's proof is wrong")
	}
	p.session = enrolled.Session
	if !p.unready {
		// Beside what follows: over a pipe without a buffer the coordinator's last
		// word and this one would wait for each other.
		go writeReady(ctx, conn)
	}
	return nil
}

func writeReady(ctx context.Context, conn *websocket.Conn) {
	if b, err := wire.Append(nil, &wire.Ready{}); err == nil {
		_ = conn.Write(ctx, websocket.MessageBinary, b) // who is gone is not ready
	}
}

func (p *player) send(ctx context.Context, m wire.Message) error {
	b, err := wire.Append(nil, m)
	if err != nil {
		return err
	}
	return p.conn.Write(ctx, websocket.MessageBinary, b)
}

// receive returns the next message; an Error message is an error.
func (p *player) receive(ctx context.Context) (wire.Message, error) {
	_, b, err := p.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	m, err := wire.Decode(b, wire.FromCoordinator)
	if err != nil {
		return nil, err
	}
	if e, ok := m.(*wire.Error); ok {
		p.mu.Lock()
		p.errs = append(p.errs, e)
		p.mu.Unlock()
		return nil, e
	}
	return m, nil
}

var errHungUp = errors.New("hung up")

// play answers the coordinator until the job is over or the connection ends.
func (p *player) play(ctx context.Context) error {
	for {
		m, err := p.receive(ctx)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *wire.Finished:
			p.mu.Lock()
			p.finished = m
			p.mu.Unlock()
			p.conn.Close(websocket.StatusNormalClosure, "")
			return nil
		case *wire.Wait:
			p.mu.Lock()
			p.waits++
			p.waitedFor = m.Reason
			p.mu.Unlock()
		case *wire.Outcome:
			p.mu.Lock()
			p.outcomes = append(p.outcomes, m.Result)
			p.mu.Unlock()
			if m.Result == wire.OutcomeDropped && !p.unready {
				err = p.send(ctx, &wire.Ready{})
			}
		case *wire.Resume:
			if err := p.resume(ctx, m); err != nil {
				return err
			}
		case *wire.Assignment:
			err = p.assigned(ctx, m)
		case *wire.Turn:
			if m.Round == p.lost {
				return fmt.Errorf("turn %d of round %d, which this device knows nothing of", m.Number, m.Round)
			}
			err = p.answer(ctx, m)
		default:
			return fmt.Errorf("message %T", m)
		}
		if err != nil {
			return err
		}
	}
}

// run dials and plays, coming back as often as the coordinator asks.
func (p *player) run(ctx context.Context) error {
	for {
		err := p.dial(ctx)
		if err == nil {
			err = p.play(ctx)
		}
		if err == nil {
			return nil
		}
		var e *wire.Error
		if p.conn != nil {
			p.conn.CloseNow()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.As(err, &e) || e.RetryMillis == 0 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (p *player) out(ctx context.Context, turn int, m wire.Message) error {
	if p.before != nil {
		var hang bool
		if m, hang = p.before(p, turn, m); hang {
			p.conn.CloseNow()
			return errHungUp
		}
	}
	if m == nil {
		return nil
	}
	return p.send(ctx, m)
}

func (p *player) assigned(ctx context.Context, a *wire.Assignment) error {
	plan, err := wire.ParsePlan(a.Plan)
	if err != nil {
		return err
	}
	if plan.Round == p.lost { // its turn was lost with its connection: it begins anew
		p.mu.Lock()
		p.lost, p.round, p.begunAgain = 0, 0, true
		p.mu.Unlock()
	}
	if plan.Round == p.round {
		return p.out(ctx, 1, &wire.Turn{Round: p.round, Number: 1, Payload: p.sent[1]})
	}
	p.mu.Lock()
	p.plans = append(p.plans, plan)
	p.patches = a.Patches
	p.mu.Unlock()
	scheme, err := quant.Lookup(p.job.Uplink)
	if err != nil {
		return err
	}
	if p.lat, err = quant.NewLattice(scheme, int(plan.Values), plan.ClipNorm, plan.Rotation); err != nil {
		return err
	}
	vectors := max(1, int(p.job.Providers))
	width, err := quant.Width(scheme, int(p.job.ShardMax)*vectors)
	if err != nil {
		return err
	}
	cfg := secagg.Config{
		Dim: p.lat.D() + int(plan.CountCoordinates), Width: width, MaxSymbol: int(p.lat.MaxSymbol()) * vectors, ShardMax: int(p.job.ShardMax),
		ShardMin: int(p.job.ShardFloor), CorruptPPM: p.job.CorruptPPM, BreachBits: int(p.job.BreachBits),
		SemiHonest: p.job.SemiHonest, Suite: secagg.SuiteX25519, Identified: p.job.Identified, Authority: p.job.RosterKey,
		Logged: p.job.LogKey != [32]byte{}, Dealt: p.job.Dealt,
	}
	hash := secagg.PlanHash(hex.EncodeToString(p.task), plan.Round, cfg, a.Plan)
	if p.client, err = secagg.NewClient(cfg, hash, p.key, rand.Reader); err != nil {
		return err
	}
	if p.job.Dealt {
		head, err := log.OpenHead(plan.Head, p.job.LogKey, "")
		if err != nil {
			return err
		}
		lot, err := (&log.Deal{Task: plan.Task, Round: plan.Round, Head: head}).Prove(p.key)
		if err != nil {
			return err
		}
		if err := p.client.SetLot(lot); err != nil {
			return err
		}
	}
	p.plan, p.round, p.sent, p.upload = plan, plan.Round, map[int][]byte{}, nil
	adv, err := p.client.Advertise()
	if err != nil {
		return err
	}
	return p.turn(ctx, 1, adv)
}

func (p *player) turn(ctx context.Context, n int, m interface {
	AppendBinary([]byte) ([]byte, error)
}) error {
	b, err := m.AppendBinary(nil)
	if err != nil {
		return err
	}
	p.sent[n] = b
	return p.out(ctx, n, &wire.Turn{Round: p.round, Number: uint8(n), Payload: b})
}

func (p *player) answer(ctx context.Context, m *wire.Turn) error {
	if m.Round != p.round {
		return nil
	}
	if p.sent[int(m.Number)+1] != nil || m.Number == 2 && p.upload != nil {
		return nil // repeated after a reconnect: what is due was resent
	}
	switch m.Number {
	case 1:
		var v secagg.Roster
		if err := v.UnmarshalBinary(m.Payload); err != nil {
			return err
		}
		p.shard = v.Shard
		if p.roster != nil {
			p.roster(p.plan, &v)
		}
		r, err := p.client.Share(&v)
		if err != nil {
			return err
		}
		return p.turn(ctx, 2, r)
	case 2:
		var v secagg.Delivery
		if err := v.UnmarshalBinary(m.Payload); err != nil {
			return err
		}
		if err := p.client.Deliver(&v); err != nil {
			return err
		}
		return p.mask(ctx)
	case 3:
		var v secagg.Survivors
		if err := v.UnmarshalBinary(m.Payload); err != nil {
			return err
		}
		r, err := p.client.Confirm(&v)
		if err != nil {
			return err
		}
		return p.turn(ctx, 4, r)
	case 4:
		var v secagg.Confirmations
		if err := v.UnmarshalBinary(m.Payload); err != nil {
			return err
		}
		r, err := p.client.Reveal(&v)
		if err != nil {
			return err
		}
		return p.turn(ctx, 5, r)
	}
	return fmt.Errorf("turn %d", m.Number)
}

func (p *player) mask(ctx context.Context) error {
	x := make([]float32, p.lat.Dim())
	if p.delta != nil {
		copy(x, p.delta(len(x)))
	}
	within, norm2 := int32(p.plan.CountSymbol), 0.0
	for _, v := range x {
		norm2 += float64(v) * float64(v)
	}
	if math.Sqrt(norm2) > p.plan.ClipNorm {
		within = -within
	}
	symbols := make([]int32, p.lat.D()+int(p.plan.CountCoordinates))
	for range max(1, p.units) {
		one, err := p.lat.Encode(x, rand.Reader)
		if err != nil {
			return err
		}
		for i, s := range one {
			symbols[i] += s
		}
		for i := range p.plan.CountCoordinates {
			symbols[p.lat.D()+int(i)] += within
		}
	}
	masked, err := p.client.Mask(symbols)
	if err != nil {
		return err
	}
	if p.upload, err = wire.NewUpload(p.round, framed{masked}); err != nil {
		return err
	}
	return p.chunks(ctx, 0)
}

// framed lets a masked vector be framed.
type framed struct{ *secagg.Masked }

func (framed) MaskedUpdate() {}

// chunks sends the update from an offset.
func (p *player) chunks(ctx context.Context, offset uint64) error {
	for {
		u, next := p.upload.Chunk(offset)
		if u == nil {
			return nil
		}
		if err := p.out(ctx, 3, u); err != nil {
			return err
		}
		offset = next
	}
}

// resume sends again what is due and not held.
func (p *player) resume(ctx context.Context, m *wire.Resume) error {
	if m.Round != p.round {
		return nil
	}
	for n := 1; n <= 5; n++ {
		if m.Held&(1<<(n-1)) != 0 {
			continue
		}
		if n == 3 && p.upload != nil {
			if err := p.chunks(ctx, m.Received); err != nil {
				return err
			}
		} else if b := p.sent[n]; b != nil {
			if err := p.send(ctx, &wire.Turn{Round: p.round, Number: uint8(n), Payload: b}); err != nil {
				return err
			}
		}
	}
	return nil
}

// httpClient keeps no connection open, so that a test leaks no goroutine.
var httpClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// fetch gets a blob.
func (p *player) fetch(b wire.Blob) ([]byte, error) {
	res, err := p.http.Get(p.token.BlobURL(b.SHA256))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("blob: %s", res.Status)
	}
	return io.ReadAll(res.Body)
}

// tinyBase is a base whose adapters have a few hundred values.
func tinyBase(t testing.TB) *model.Base { return tiny.Base(t, 8, 1, 8) }
