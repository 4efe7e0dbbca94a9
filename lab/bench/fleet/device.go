//go:build unix

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/contract"
	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// fleet is all devices.
type fleet struct {
	o      options
	work   chan struct{} // a place a processor
	broken atomic.Int64  // connections that ended by themselves
	token  wire.Token
	http   *http.Client
	ended  atomic.Int64 // devices that do not come back though the job goes on
	cause  atomic.Value
	late   atomic.Uint64 // round whose late device is chosen
}

func newFleet(o options, token wire.Token) *fleet {
	return &fleet{o: o, token: token, work: make(chan struct{}, runtime.GOMAXPROCS(0)), http: &http.Client{Transport: &http.Transport{MaxConnsPerHost: 64, MaxIdleConnsPerHost: 64}}}
}

// run plays all devices until the job is over.
func (f *fleet) run(ctx context.Context) {
	joining := make(chan struct{}, 64) // handshakes at a time
	for range f.o.Devices {
		go func() {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			for err == nil && ctx.Err() == nil {
				d := &device{fleet: f, key: key, gone: make(chan struct{})}
				joining <- struct{}{}
				err = d.dial(ctx)
				<-joining
				if err == nil {
					err = d.play(ctx)
					d.conn.CloseNow()
				}
				var told *wire.Error
				switch {
				case err == nil:
					return // finished
				case errors.Is(err, errDropped):
					time.Sleep(time.Second)
					err = nil
				case errors.As(err, &told) && told.RetryMillis > 0:
					time.Sleep(time.Duration(told.RetryMillis) * time.Millisecond)
					err = nil
				case told == nil && ctx.Err() == nil: // the connection broke
					f.broken.Add(1)
					time.Sleep(time.Second)
					err = nil
				}
			}
			if ctx.Err() == nil {
				f.ended.Add(1)
				f.cause.CompareAndSwap(nil, fmt.Sprint(err))
			}
		}()
	}
}

// errDropped is a device that hung up by its own will.
var errDropped = errors.New("dropped")

// device speaks the protocol as edge does, and trains nothing: its update is
// constant. It forgets a round that it leaves.
type device struct {
	*fleet
	key   ed25519.PrivateKey
	conn  *websocket.Conn
	task  [32]byte
	job   *wire.Job
	round uint64
	mask  *secagg.Client
	lat   *quant.Lattice
	plan  *wire.Plan
	done  uint8 // the last turn sent
	gone  chan struct{}
}

func (d *device) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, d.token.Endpoint(), &websocket.DialOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return err
	}
	conn.SetReadLimit(wire.MaxFrame)
	d.conn = conn
	id := [32]byte(d.key.Public().(ed25519.PublicKey))
	hello := &wire.Hello{MinVersion: wire.Version, MaxVersion: wire.Version, Agent: "fleet"}
	if _, err := rand.Read(hello.Nonce[:]); err != nil {
		return err
	}
	if err := d.send(ctx, hello); err != nil {
		return err
	}
	welcome, err := expect[*wire.Welcome](ctx, d)
	if err != nil {
		return err
	}
	enrol := &wire.Enrol{Identity: id, Proof: wire.DeviceProof(d.token.Secret, hello, welcome, id)}
	copy(enrol.Signature[:], ed25519.Sign(d.key, wire.EnrolBytes(hello, welcome, id, wire.ChannelPlain, nil, nil)))
	if err := d.send(ctx, enrol); err != nil {
		return err
	}
	enrolled, err := expect[*wire.Enrolled](ctx, d)
	if err != nil {
		return err
	}
	if d.job, err = wire.ParseJob(enrolled.Job); err != nil {
		return err
	}
	d.task = wire.TaskID(enrolled.Job)
	if !wire.EqualProof(enrolled.Proof, wire.CoordinatorProof(d.token.Secret, hello, welcome, id, d.task)) {
		return errors.New("the coordinator's proof is wrong")
	}
	return d.send(ctx, &wire.Ready{})
}

func expect[M wire.Message](ctx context.Context, d *device) (m M, err error) {
	got, err := d.receive(ctx)
	if err != nil {
		return m, err
	}
	m, ok := got.(M)
	if !ok {
		return m, fmt.Errorf("%T instead of %T", got, m)
	}
	return m, nil
}

func (d *device) send(ctx context.Context, m wire.Message) error {
	b, err := wire.Append(nil, m)
	if err != nil {
		return err
	}
	return d.conn.Write(ctx, websocket.MessageBinary, b)
}

func (d *device) receive(ctx context.Context) (wire.Message, error) {
	_, b, err := d.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	m, err := wire.Decode(b, wire.FromCoordinator)
	if e, ok := m.(*wire.Error); ok && err == nil {
		return nil, e
	}
	return m, err
}

// play answers until the job is over. Reading goes on meanwhile, as edge's does:
// a device that waits for a processor must not seem dead.
func (d *device) play(ctx context.Context) error {
	type read struct {
		m   wire.Message
		err error
	}
	in := make(chan read, 8)
	go func() {
		defer close(in)
		for {
			m, err := d.receive(ctx)
			select {
			case in <- read{m, err}:
			case <-d.gone:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	defer close(d.gone)
	for got := range in {
		m, err := got.m, got.err
		if err != nil {
			return err
		}
		// As many at a time as there are processors: thousands that share two would
		// leave none to answer pings in time, which no real device's work does.
		d.work <- struct{}{}
		done, err := d.take(ctx, m)
		<-d.work
		if done || err != nil {
			return err
		}
	}
	return nil
}

// take answers one message; done says that the job is over.
func (d *device) take(ctx context.Context, m wire.Message) (done bool, err error) {
	switch m := m.(type) {
	case *wire.Finished:
		return true, nil
	case *wire.Outcome:
		if m.Result == wire.OutcomeDropped {
			return false, d.send(ctx, &wire.Ready{})
		}
	case *wire.Assignment:
		return false, d.assigned(ctx, m)
	case *wire.Turn:
		if m.Round == d.round && m.Number == d.done {
			return false, d.answer(ctx, m)
		}
	}
	return false, nil
}

func (d *device) assigned(ctx context.Context, a *wire.Assignment) error {
	plan, err := wire.ParsePlan(a.Plan)
	if err != nil {
		return err
	}
	if _, fresh := plan.AdapterSeed(); !fresh {
		if err := d.fetch(ctx, plan.Slice.Blob); err != nil {
			return err
		}
	}
	terms, err := contract.Announced(d.job).Terms()
	if err != nil {
		return err
	}
	vector, err := terms.Planned(plan)
	if err != nil {
		return err
	}
	d.lat = vector.Lattice
	cfg := terms.Masking(vector)
	hash := secagg.PlanHash(hex.EncodeToString(d.task[:]), plan.Round, cfg, a.Plan)
	if d.mask, err = secagg.NewClient(cfg, hash, d.key, rand.Reader); err != nil {
		return err
	}
	d.plan, d.round, d.done = plan, plan.Round, 0
	m, err := d.mask.Advertise()
	if err != nil {
		return err
	}
	return d.turn(ctx, 1, m)
}

// fetch gets a blob and forgets it.
func (d *device) fetch(ctx context.Context, b wire.Blob) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.token.BlobURL(b.SHA256), nil)
	if err != nil {
		return err
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || uint64(n) != b.Size {
		return fmt.Errorf("blob of %d bytes, %d announced: %w", n, b.Size, err)
	}
	return nil
}

type encoding interface{ AppendBinary([]byte) ([]byte, error) }

func (d *device) turn(ctx context.Context, n uint8, m encoding) error {
	b, err := m.AppendBinary(nil)
	if err != nil {
		return err
	}
	d.done = n
	return d.send(ctx, &wire.Turn{Round: d.round, Number: n, Payload: b})
}

// answer takes the coordinator's answer to a turn and sends the next one.
func (d *device) answer(ctx context.Context, m *wire.Turn) error {
	var out encoding
	var err error
	switch m.Number {
	case 1:
		var v secagg.Roster
		if err = v.UnmarshalBinary(m.Payload); err == nil {
			out, err = d.mask.Share(&v)
		}
	case 2:
		var v secagg.Delivery
		if err = v.UnmarshalBinary(m.Payload); err == nil {
			err = d.mask.Deliver(&v)
		}
	case 3:
		var v secagg.Survivors
		if err = v.UnmarshalBinary(m.Payload); err == nil {
			out, err = d.mask.Confirm(&v)
		}
	case 4:
		var v secagg.Confirmations
		if err = v.UnmarshalBinary(m.Payload); err == nil {
			out, err = d.mask.Reveal(&v)
		}
	}
	if err != nil {
		return err
	}
	switch m.Number {
	case 1:
		if last := d.late.Load(); d.o.Late > 0 && last < d.round && d.late.CompareAndSwap(last, d.round) {
			<-d.work // it only waits
			time.Sleep(d.o.Late)
			d.work <- struct{}{}
		}
	case 2:
		if mathrand.Float64() < d.o.Drop {
			return errDropped
		}
		return d.upload(ctx)
	}
	return d.turn(ctx, m.Number+1, out)
}

// framed lets a masked vector be framed.
type framed struct{ *secagg.Masked }

func (framed) MaskedUpdate() {}

func (d *device) upload(ctx context.Context) error {
	x := make([]float32, d.lat.Dim())
	for i := range x {
		x[i] = 1e-3
	}
	symbols, err := d.lat.Encode(x, rand.Reader)
	if err != nil {
		return err
	}
	masked, err := d.mask.Mask(symbols)
	if err != nil {
		return err
	}
	up, err := wire.NewUpload(d.round, framed{masked})
	if err != nil {
		return err
	}
	d.done = 3
	for offset := uint64(0); ; {
		u, next := up.Chunk(offset)
		if u == nil {
			return nil
		}
		if err := d.send(ctx, u); err != nil {
			return err
		}
		offset = next
	}
}
