package loadtest

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
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// errDropped is a device that hung up by its own will.
var errDropped = errors.New("dropped")

// device speaks the protocol as edge does, and trains nothing: its update is
// constant. It forgets a round that it leaves.
type device struct {
	*Fleet
	http  *http.Client
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
	conn, answer, err := websocket.Dial(ctx, d.token.Endpoint(), &websocket.DialOptions{HTTPClient: d.http, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	conn.SetReadLimit(wire.MaxFrame)
	d.conn = conn
	id := [32]byte(d.key.Public().(ed25519.PublicKey))
	hello := &wire.Hello{MinVersion: wire.Version, MaxVersion: wire.Version, Agent: "loadtest"}
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
	enrol := &wire.Enrol{Identity: id, Proof: wire.DeviceProof(d.token.Secret, hello, welcome, id), Channel: wire.ChannelPlain, Fused: true}
	var exporter []byte
	if answer.TLS != nil && welcome.TLS {
		enrol.Channel = wire.ChannelTLS
		if exporter, err = answer.TLS.ExportKeyingMaterial(wire.ExporterLabel, nil, 32); err != nil {
			return err
		}
	}
	copy(enrol.Signature[:], ed25519.Sign(d.key, wire.EnrolBytes(hello, welcome, id, enrol.Channel, exporter, nil)))
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
	if d.job.Providers > 0 {
		return errProviders
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
		d.seen.outcome(m)
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
	d.seen.assigned(plan.Round)
	cfg := terms.Masking(vector)
	hash := secagg.PlanHash(hex.EncodeToString(d.task[:]), plan.Round, cfg, a.Plan)
	if d.mask, err = secagg.NewClient(cfg, hash, d.key, rand.Reader); err != nil {
		return err
	}
	if d.job.Dealt {
		if err := d.draw(plan); err != nil {
			return err
		}
	}
	d.plan, d.round, d.done = plan, plan.Round, 0
	m, err := d.mask.Advertise()
	if err != nil {
		return err
	}
	return d.turn(ctx, 1, m)
}

// draw draws the device's lot, where a round is dealt by them.
func (d *device) draw(plan *wire.Plan) error {
	head, err := log.OpenHead(plan.Head, d.job.LogKey, "")
	if err != nil {
		return err
	}
	lot, err := (&log.Deal{Task: plan.Task, Round: plan.Round, Head: head}).Prove(d.key)
	if err != nil {
		return err
	}
	return d.mask.SetLot(lot)
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
		if last := d.late.Load(); d.cfg.Late > 0 && last < d.round && d.late.CompareAndSwap(last, d.round) {
			<-d.work // it only waits
			time.Sleep(d.cfg.Late)
			d.work <- struct{}{}
		}
	case 2:
		if mathrand.Float64() < d.cfg.Drop {
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
	for range d.plan.CountCoordinates { // it says that it was within the clip norm
		symbols = append(symbols, int32(d.plan.CountSymbol))
	}
	symbols = append(symbols, make([]int32, 4*d.plan.FigureCoordinates)...) // and holds nothing out
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
