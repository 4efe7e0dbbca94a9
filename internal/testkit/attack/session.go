package attack

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// The kinds of frames.
const (
	Hello byte = 1 + iota
	Welcome
	Enrol
	Enrolled
	Wait
	Assignment
	Turn
	Update
	Resume
	Outcome
	Refuse
	Finished
	Error
	Ready
)

// version is the protocol's.
const version = 20

// mostFrame bounds what is read.
const mostFrame = 1<<20 + 256

// A Frame is what the other side said.
type Frame struct {
	Kind byte
	Body Array
}

// Bytes, Uint and Text are an element of the body, or nothing where it is of
// another kind.
func (f Frame) Bytes(i int) []byte { b, _ := f.at(i).([]byte); return b }
func (f Frame) Uint(i int) uint64  { n, _ := f.at(i).(uint64); return n }
func (f Frame) Text(i int) string  { s, _ := f.at(i).(string); return s }

func (f Frame) at(i int) any {
	if i >= len(f.Body) {
		return nil
	}
	return f.Body[i]
}

// A Conn is a connection of either side, a frame at a time.
type Conn struct {
	ws       *websocket.Conn
	exporter []byte // of its TLS; nil: none
}

// Send writes a frame of a kind.
func (c *Conn) Send(ctx context.Context, kind byte, body Array) error {
	return c.SendRaw(ctx, append([]byte{kind}, Encode(body)...))
}

// SendRaw writes a frame as it is.
func (c *Conn) SendRaw(ctx context.Context, frame []byte) error {
	return c.ws.Write(ctx, websocket.MessageBinary, frame)
}

// SendText writes a frame in the message type that the protocol has none of.
func (c *Conn) SendText(ctx context.Context, text string) error {
	return c.ws.Write(ctx, websocket.MessageText, []byte(text))
}

// SendSplit writes a frame byte by byte, in as many WebSocket fragments as the library makes of that.
func (c *Conn) SendSplit(ctx context.Context, frame []byte) error {
	w, err := c.ws.Writer(ctx, websocket.MessageBinary)
	if err != nil {
		return fmt.Errorf("attack: %w", err)
	}
	for i := range frame {
		if _, err := w.Write(frame[i : i+1]); err != nil {
			return err
		}
	}
	return w.Close()
}

// Next reads a frame.
func (c *Conn) Next(ctx context.Context) (Frame, error) {
	_, b, err := c.ws.Read(ctx)
	if err != nil {
		return Frame{}, err
	}
	if len(b) == 0 {
		return Frame{}, errors.New("attack: an empty frame")
	}
	body, err := DecodeArray(b[1:], 0)
	return Frame{b[0], body}, err
}

// Close hangs up without a word.
func (c *Conn) Close() {
	if c != nil && c.ws != nil {
		c.ws.CloseNow()
	}
}

// A SessionError is the coordinator's Error.
type SessionError struct {
	Code uint64
	Text string
}

func (e *SessionError) Error() string { return fmt.Sprintf("coordinator: %d %s", e.Code, e.Text) }

// A Device is one that enrols, as the document says or not.
type Device struct {
	Token    Token
	Identity ed25519.PrivateKey

	// Lies of the handshake; each may be nil or zero.
	Versions [2]uint64              // offered
	Session  []byte                 // to resume; another's, say
	Held     uint64                 // keys of the log that it says it knows
	Alter    func(enrol Array)      // changes what is sent, before its signature is made
	Forge    func(enrol Array)      // changes what is sent, after it
	Relayed  func(signature []byte) // looks at the signature

	*Conn
	web      *http.Client
	JobBytes []byte
	Task     []byte // its name
	Resumed  bool
}

// NewDevice is a device with an identity of its own.
func NewDevice(token Token) *Device {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err) // without randomness there is nothing to test
	}
	return &Device{Token: token, Identity: key, Versions: [2]uint64{version, version}}
}

// Public is its identity.
func (d *Device) Public() []byte { return d.Identity.Public().(ed25519.PublicKey) }

// dial opens the WebSocket and keeps the exporter of its TLS.
func (d *Device) dial(ctx context.Context) (*Conn, error) {
	c := new(Conn)
	transport := &http.Transport{DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, &tls.Config{
			MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, // the pin is what is verified
			VerifyConnection: func(s tls.ConnectionState) error {
				if sum := sha256.Sum256(s.PeerCertificates[0].Raw); !bytes.Equal(sum[:], d.Token.Pin) {
					return errors.New("attack: another certificate than the token's")
				}
				return nil
			},
		})
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		state := conn.ConnectionState()
		c.exporter, err = state.ExportKeyingMaterial("EXPORTER-starling-enrol", nil, 32)
		return conn, err
	}}
	d.web = &http.Client{Transport: transport}
	url := "ws" + strings.TrimPrefix(d.Token.URL, "http") + "/v1/join"
	ws, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: d.web})
	if resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("attack: %w", err)
	}
	ws.SetReadLimit(mostFrame)
	c.ws = ws
	return c, nil
}

// transcript is what proofs and the signature begin with, behind their label.
func transcript(label string, least, most, chosen uint64, nonce, challenge, task, identity []byte) []byte {
	b := append([]byte(label), 0)
	for _, v := range []uint64{least, most, chosen} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return append(append(append(append(b, nonce...), challenge...), task...), identity...)
}

func proof(secret, text []byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write(text)
	return m.Sum(nil)
}

// Connect opens a connection and says Hello; what is left of the handshake is
// Enrol's.
func (d *Device) Connect(ctx context.Context) (welcome Frame, nonce []byte, err error) {
	if d.Conn, err = d.dial(ctx); err != nil {
		return welcome, nil, err
	}
	nonce = random(32)
	if err := d.Send(ctx, Hello, Array{d.Versions[0], d.Versions[1], nonce, "attack/1"}); err != nil {
		return welcome, nil, err
	}
	welcome, err = d.expect(ctx, Welcome)
	return welcome, nonce, err
}

// Join does the whole handshake: the session is open, its job is read.
func (d *Device) Join(ctx context.Context) error {
	welcome, nonce, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	return d.Enrol(ctx, welcome, nonce)
}

// Enrol answers the challenge.
func (d *Device) Enrol(ctx context.Context, welcome Frame, nonce []byte) error {
	chosen, challenge, task := welcome.Uint(0), welcome.Bytes(1), welcome.Bytes(2)
	seen := func(label string) []byte {
		return transcript(label, d.Versions[0], d.Versions[1], chosen, nonce, challenge, task, d.Public())
	}
	channel, exporter := 0, []byte(nil)
	if tls, _ := welcome.at(3).(bool); tls {
		channel, exporter = 1, d.exporter
	}
	var session any
	if d.Session != nil {
		session = d.Session
	}
	enrol := Array{d.Public(), proof(d.Token.Secret, seen("starling/1 device proof")), nil, session, nil, channel, false, d.Held}
	if d.Alter != nil {
		d.Alter(enrol)
	}
	text := append(seen("starling/1 enrol"), byte(channel), byte(len(exporter)))
	text = append(append(text, exporter...), d.Session...)
	signature := ed25519.Sign(d.Identity, text)
	if d.Relayed != nil {
		d.Relayed(signature)
	}
	enrol[2] = signature
	if d.Forge != nil {
		d.Forge(enrol)
	}
	if err := d.Send(ctx, Enrol, enrol); err != nil {
		return err
	}
	enrolled, err := d.expect(ctx, Enrolled)
	if err != nil {
		return err
	}
	d.Session, d.JobBytes = enrolled.Bytes(1), enrolled.Bytes(3)
	d.Resumed, _ = enrolled.at(2).(bool)
	d.Task = taskOf(d.JobBytes)
	if want := proof(d.Token.Secret, append(seen("starling/1 coordinator proof"), d.Task...)); !hmac.Equal(want, enrolled.Bytes(0)) {
		return errors.New("attack: the coordinator does not know the secret, or means another job")
	}
	return nil
}

// taskOf is a job's name.
func taskOf(job []byte) []byte {
	sum := sha256.Sum256(append([]byte("starling/1 task\x00"), job...))
	return sum[:]
}

// expect reads until a frame of a kind comes, and says what came in its place where
// the session ends.
func (d *Device) expect(ctx context.Context, kind byte) (Frame, error) {
	for {
		f, err := d.Next(ctx)
		if err != nil {
			return f, err
		}
		switch f.Kind {
		case Error:
			return f, &SessionError{f.Uint(0), f.Text(1)}
		case kind:
			return f, nil
		case Wait:
		default:
			return f, fmt.Errorf("attack: a frame of kind %d, %d expected", f.Kind, kind)
		}
	}
}

// Refusal waits for the error that ends the session.
func (d *Device) Refusal(ctx context.Context) error {
	_, err := d.expect(ctx, Error)
	if err == nil {
		err = errors.New("attack: no error")
	}
	return err
}

// Fetch gets a blob by its hash.
func (d *Device) Fetch(ctx context.Context, sum []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/blob/%x", d.Token.URL, sum), nil)
	if err != nil {
		return nil, err
	}
	resp, err := d.web.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<30))
	if err != nil {
		return nil, fmt.Errorf("attack: %w", err)
	}
	if got := sha256.Sum256(b); !bytes.Equal(got[:], sum) {
		return nil, fmt.Errorf("attack: blob %x: %s, other bytes", sum, resp.Status)
	}
	return b, nil
}
