package bandwidth

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// Without a mask. The service has no such mode: a device has no code that
// sends an update in the clear. These rows show what masking costs, over the
// same transport: plan, acknowledgement and outcome as the service sends them,
// the adapter by HTTP, and the vector in chunks of at most 1 MiB behind a head
// of 25 bytes. There is no joining and no key exchange.

// clearHead is kind, round, total and offset.
const clearHead = 1 + 3*8

// clearJob is both sides of a measurement without masks.
type clearJob struct {
	set     *setting
	subject *Subject
	rounds  []*wire.Assignment
	fetch   string // path of the adapter's values, from the second round on
	values  []byte // what is there

	mu    sync.Mutex
	up    float64   // by mu: all devices, all rounds
	down  float64   // by mu
	parts Parts     // by mu: the same
	mean  []float64 // by mu: of the last round
	err   error     // by mu: the first
}

// measureClear plays the rounds of a setting without masks.
func measureClear(ctx context.Context, set *setting, s *Subject) (m measurement, err error) {
	c := &clearJob{set: set, subject: s, mean: make([]float64, s.Params())}
	if err := c.plan(); err != nil {
		return m, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(wire.Path, c.serve)
	mux.HandleFunc(c.fetch, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(len(c.values)))
		w.Write(c.values)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return m, err
	}
	srv := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	defer func() {
		srv.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	}()

	var wg sync.WaitGroup
	slots := make(chan struct{}, 8) // devices at a time
	for _, u := range s.updates {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			c.note(c.device(ctx, "http://"+ln.Addr().String(), u))
		})
	}
	wg.Wait()
	if c.err != nil {
		return m, fmt.Errorf("bandwidth: %s without mask: %w", set.Scheme, c.err)
	}
	n := float64(set.Cohort * set.Rounds)
	p := c.parts
	m.Up, m.Down = c.up/n, c.down/n
	m.Parts = Parts{Vector: p.Vector / n, Slices: p.Slices / n, Assignment: p.Assignment / n, Session: p.Session / n,
		Framing: p.Framing / n, WebSocket: p.WebSocket / n}
	m.Padded = s.Params()
	got := make([]float32, len(c.mean))
	for i, v := range c.mean {
		got[i] = float32(v)
	}
	sigma := set.NoiseMultiplier * set.Clip / float64(set.Cohort)
	want, err := meanOf(s.updates, set.Clip)
	if err != nil {
		return m, err
	}
	m.fidelity = compare(got, want, sigma*sigma)
	f, err := quant.LookupFormat(set.Scheme)
	if err != nil {
		return m, err
	}
	m.Quantized = float64(f.Size(s.Params()))
	m.Recompressed = m.Parts.Vector / m.Quantized
	return m, nil
}

// note keeps the first error.
func (c *clearJob) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// plan makes the rounds' assignments: a seed first, then the adapter after one
// round, as the difference to the seed's if that is smaller.
func (c *clearJob) plan() error {
	held := model.NewAdapter(c.subject.layout, 1).Slice(c.subject.rank)
	target := append([]float32(nil), held...)
	mean, err := meanOf(c.subject.updates, c.set.Clip)
	if err != nil {
		return err
	}
	for i, v := range mean {
		target[i] += float32(v)
	}
	full, decoded, err := quant.PackUpdate(target, nil, c.set.Downlink, c.set.Codec)
	if err != nil {
		return err
	}
	patch, err := quant.PackPatch(full, held)
	if err != nil {
		return err
	}
	c.values = full
	digest := sha256.Sum256(full)
	slice := wire.Slice{Blob: wire.Blob{SHA256: digest, Size: uint64(len(full))}, Digest: quant.Digest(decoded), Format: c.set.Downlink, Codec: c.set.Codec}
	c.fetch = fmt.Sprintf("%s%x", wire.BlobPath, digest)
	var patches []wire.Patch
	if patch != nil {
		c.values = patch
		patches = []wire.Patch{{From: quant.Digest(held), Blob: wire.Blob{SHA256: digest, Size: uint64(len(patch))}}}
	}
	for k := range c.set.Rounds {
		p := &wire.Plan{Round: uint64(k + 1), Version: uint64(k), Rank: uint16(c.subject.rank), Values: uint32(c.subject.Params()), ClipNorm: 1, Steps: 1, Rate: 0.1}
		a := &wire.Assignment{Millis: 60_000}
		if k == 0 {
			p.Seed = make([]byte, 8)
		} else {
			p.Slice, a.Patches = slice, patches
		}
		if a.Plan, err = p.AppendBinary(nil); err != nil {
			return err
		}
		c.rounds = append(c.rounds, a)
	}
	return nil
}

// silence is how long a device waits for an answer from the same machine.
const silence = 2 * time.Minute

// device takes part in all rounds with one update.
func (c *clearJob) device(ctx context.Context, url string, update []float32) error {
	var session, blobs socketBytes
	dialer := &http.Client{Transport: &http.Transport{DialContext: session.dial}}
	fetcher := &http.Client{Transport: &http.Transport{DialContext: blobs.dial, DisableCompression: true}}
	defer dialer.CloseIdleConnections()
	defer fetcher.CloseIdleConnections()
	ws, _, err := websocket.Dial(ctx, url+wire.Path, &websocket.DialOptions{HTTPClient: dialer, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return fmt.Errorf("bandwidth: join: %w", err)
	}
	defer ws.CloseNow()
	ws.SetReadLimit(wire.MaxFrame)
	var p Parts
	hear := func(book *float64) error {
		ctx, cancel := context.WithTimeout(ctx, silence)
		defer cancel()
		_, frame, err := ws.Read(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("nothing came for %v", silence)
		}
		*book += float64(len(frame))
		return err
	}
	clipped := slices.Clone(update)
	if _, err := clip(clipped, c.set.Clip); err != nil {
		return err
	}
	for round := range c.rounds {
		if err := hear(&p.Assignment); err != nil {
			return err
		}
		if round > 0 {
			resp, err := fetcher.Get(url + c.fetch)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if err != nil {
				return err
			}
		}
		msg, err := quant.Compress(nil, clipped, c.set.Scheme, c.set.Codec)
		if err != nil {
			return err
		}
		for at := 0; at < len(msg); at += wire.MaxChunk {
			data := msg[at:min(at+wire.MaxChunk, len(msg))]
			frame := make([]byte, clearHead, clearHead+len(data))
			binary.LittleEndian.PutUint64(frame[1:], uint64(round))
			binary.LittleEndian.PutUint64(frame[9:], uint64(len(msg)))
			binary.LittleEndian.PutUint64(frame[17:], uint64(at))
			if err := ws.Write(ctx, websocket.MessageBinary, append(frame, data...)); err != nil {
				return err
			}
			p.Framing += clearHead
		}
		p.Vector += float64(len(msg))
		if err := hear(&p.Session); err != nil { // the outcome
			return err
		}
	}
	ws.CloseNow()
	sent, received := float64(session.up.Load()), float64(session.down.Load())
	p.Slices = float64(blobs.up.Load() + blobs.down.Load())
	p.WebSocket = sent + received - p.Assignment - p.Session - p.Framing - p.Vector
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up += sent + float64(blobs.up.Load())
	c.down += received + float64(blobs.down.Load())
	c.parts = Parts{Vector: c.parts.Vector + p.Vector, Slices: c.parts.Slices + p.Slices, Assignment: c.parts.Assignment + p.Assignment,
		Session: c.parts.Session + p.Session, Framing: c.parts.Framing + p.Framing, WebSocket: c.parts.WebSocket + p.WebSocket}
	return nil
}

// serve is the other side: it decodes what comes and adds it to the mean.
func (c *clearJob) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		c.note(err)
		return
	}
	defer ws.CloseNow()
	ws.SetReadLimit(wire.MaxFrame)
	for round := range c.rounds {
		if err := c.serveRound(r.Context(), ws, round); err != nil {
			c.note(err)
			return
		}
	}
	_, _, _ = ws.Read(r.Context()) // returns when the device has closed
}

func (c *clearJob) serveRound(ctx context.Context, ws *websocket.Conn, round int) error {
	tell := func(m wire.Message) error {
		frame, err := wire.Append(nil, m)
		if err != nil {
			return err
		}
		return ws.Write(ctx, websocket.MessageBinary, frame)
	}
	if err := tell(c.rounds[round]); err != nil {
		return err
	}
	var msg []byte
	for total := 1; len(msg) < total; {
		_, frame, err := ws.Read(ctx)
		if err != nil {
			return err
		}
		if len(frame) <= clearHead {
			return fmt.Errorf("chunk of %d bytes", len(frame))
		}
		total = int(binary.LittleEndian.Uint64(frame[9:]))
		msg = append(msg, frame[clearHead:]...)
	}
	x, err := quant.Decompress(msg, c.subject.Params())
	if err != nil {
		return err
	}
	if round == len(c.rounds)-1 {
		c.mu.Lock()
		for i, v := range x {
			c.mean[i] += float64(v) / float64(c.set.Cohort)
		}
		c.mu.Unlock()
	}
	return tell(&wire.Outcome{Round: uint64(round) + 1, Result: wire.OutcomeCommitted})
}
