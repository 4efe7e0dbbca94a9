package bandwidth

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/app/sim"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// Without a mask. The service has no such mode: a device has no code that
// sends an update in the clear. These rows show what masking costs, over the
// same transport: plan, acknowledgement and outcome as the service sends them,
// the adapter by HTTP, and the vector in chunks of at most 1 MiB behind a head
// of 25 bytes. There is no joining and no key exchange, and so devices come one
// after another.

// clearHead is kind, round, total and offset.
const clearHead = 1 + 3*8

// clearJob is both sides of a measurement without masks.
type clearJob struct {
	set     *setting
	subject *Subject
	rounds  []*wire.Assignment
	fetch   string    // path of the adapter's values, from the second round on
	values  []byte    // what is there
	got     []float32 // the mean of the last round, as it arrives
}

// measureClear plays the rounds of a setting without masks.
func measureClear(ctx context.Context, set *setting, s *Subject) (m measurement, err error) {
	c := &clearJob{set: set, subject: s, got: make([]float32, s.Params())}
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
	go func() { _ = srv.Serve(ln) }() // its end is Close
	defer srv.Close()
	var session, blobs sim.Count
	for _, u := range s.updates {
		if err := c.device(ctx, "http://"+ln.Addr().String(), u, &session, &blobs, &m.Parts); err != nil {
			return m, fmt.Errorf("bandwidth: %s without mask: %w", set.Scheme, err)
		}
	}
	p := &m.Parts
	p.Slices = float64(blobs.Up.Load() + blobs.Down.Load())
	p.WebSocket = float64(session.Up.Load()+session.Down.Load()) - p.Assignment - p.Session - p.Framing - p.Vector
	n := float64(set.Cohort * set.Rounds)
	m.Parts = p.over(n)
	m.Up, m.Down = float64(session.Up.Load()+blobs.Up.Load())/n, float64(session.Down.Load()+blobs.Down.Load())/n
	m.Padded = s.Params()
	sigma := set.NoiseMultiplier * set.Clip / float64(set.Cohort)
	m.fidelity = compare(c.got, meanOf(s.updates, set.Clip), sigma*sigma)
	f, err := quant.LookupFormat(set.Scheme)
	if err != nil {
		return m, err
	}
	m.Quantized = float64(f.Size(s.Params()))
	m.Recompressed = m.Parts.Vector / m.Quantized
	return m, nil
}

// plan makes the rounds' assignments: a seed first, then the adapter after one
// round, as the difference to the seed's if that is smaller.
func (c *clearJob) plan() error {
	held := model.NewAdapter(c.subject.layout, 1).Slice(c.subject.rank)
	target := slices.Clone(held)
	for i, v := range meanOf(c.subject.updates, c.set.Clip) {
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

// device takes part in all rounds with one update, and adds to parts what its frames were for.
func (c *clearJob) device(ctx context.Context, url string, update []float32, session, blobs *sim.Count, parts *Parts) error {
	dialer := &http.Client{Transport: &http.Transport{DialContext: session.Dialer()}}
	fetcher := &http.Client{Transport: &http.Transport{DialContext: blobs.Dialer(), DisableCompression: true}}
	defer dialer.CloseIdleConnections()
	defer fetcher.CloseIdleConnections()
	ws, _, err := websocket.Dial(ctx, url+wire.Path, &websocket.DialOptions{HTTPClient: dialer, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	defer ws.CloseNow()
	ws.SetReadLimit(wire.MaxFrame)
	hear := func(book *float64) error {
		ctx, cancel := context.WithTimeoutCause(ctx, silence, fmt.Errorf("nothing came for %v", silence))
		defer cancel()
		_, frame, err := ws.Read(ctx)
		*book += float64(len(frame))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	for round := range c.rounds {
		if err := hear(&parts.Assignment); err != nil {
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
		msg, err := quant.Compress(nil, clipped(update, c.set.Clip), c.set.Scheme, c.set.Codec)
		if err != nil {
			return err
		}
		for at := 0; at < len(msg); at += wire.MaxChunk {
			head := make([]byte, clearHead)
			binary.LittleEndian.PutUint64(head[1:], uint64(round))
			binary.LittleEndian.PutUint64(head[9:], uint64(len(msg)))
			binary.LittleEndian.PutUint64(head[17:], uint64(at))
			if err := ws.Write(ctx, websocket.MessageBinary, append(head, msg[at:min(at+wire.MaxChunk, len(msg))]...)); err != nil {
				return err
			}
			parts.Framing += clearHead
		}
		parts.Vector += float64(len(msg))
		if err := hear(&parts.Session); err != nil { // the outcome
			return err
		}
	}
	return nil
}

// serve is the other side: it decodes what comes and adds it to the mean.
func (c *clearJob) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // it has answered
	}
	defer ws.CloseNow()
	ws.SetReadLimit(wire.MaxFrame)
	for round := range c.rounds {
		if err := c.serveRound(r.Context(), ws, round); err != nil {
			ws.Close(websocket.StatusInternalError, fmt.Sprintf("%.120s", err)) // which the device's error says
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
		for i, v := range x {
			c.got[i] += v / float32(c.set.Cohort)
		}
	}
	return tell(&wire.Outcome{Round: uint64(round) + 1, Result: wire.OutcomeCommitted})
}
