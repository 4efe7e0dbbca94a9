package attack

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// A Coordinator announces a job and hands its sessions to anyone who plays it.
type Coordinator struct {
	Job       Array
	Authority ed25519.PrivateKey
	Log       *Log                 // of enrolled keys; nil: the job has none
	Invented  []ed25519.PrivateKey // identities that it has enrolled for itself, beforehand
	Secret    []byte
	Announces bool // tells anybody of its job, before they enrol
	// Lie changes what is said in the handshake: the frames Welcome and Enrolled.
	Lie func(kind byte, body Array)
	// Elsewhere, where it is set, is where every request is sent on to.
	Elsewhere string

	Sessions chan *Session // of devices that have enrolled

	mu    sync.Mutex
	blobs map[string][]byte // by mu
	asked []string          // by mu: paths of requests
}

// NewCoordinator announces a job under an authority of its own.
func NewCoordinator(job Array) *Coordinator {
	_, authority, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err) // without randomness there is nothing to test
	}
	c := &Coordinator{Job: slices.Clone(job), Authority: authority, Sessions: make(chan *Session, 16), blobs: map[string][]byte{}}
	if c.Job[JobKey] = public(authority); c.Job[JobIdentified] == true {
		c.Job[JobKey] = make([]byte, 32)
	}
	if len(c.Job) > JobLog && !bytes.Equal(Frame{Body: c.Job}.Bytes(JobLog), make([]byte, 32)) {
		c.Log = NewLog()
		c.Job[JobLog] = public(c.Log.Key)
		c.Invent(8)
	}
	return c
}

// Invent enrols so many identities for itself.
func (c *Coordinator) Invent(n int) {
	for range n {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			panic(err)
		}
		c.Invented = append(c.Invented, key)
		c.Log.Add(public(key), 1_700_000_000)
	}
}

// Head is that of its log, nil if it has none.
func (c *Coordinator) Head() any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Log == nil {
		return nil
	}
	return c.Log.Head()
}

// Blob puts bytes where devices fetch them, under their hash, and returns what
// names them.
func (c *Coordinator) Blob(b []byte) Array {
	sum := sha256.Sum256(b)
	c.Put(sum[:], b)
	return Array{sum[:], len(b)}
}

// Put puts bytes where devices fetch them under any hash.
func (c *Coordinator) Put(sum, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blobs[hex.EncodeToString(sum)] = b
}

// Asked are the paths that were asked for.
func (c *Coordinator) Asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// Token leads devices here.
func (c *Coordinator) Token(url string) Token {
	return Token{URL: url, Secret: c.Secret, Task: taskOf(Encode(c.Job)), Authority: public(c.Authority)}
}

// ServeHTTP answers devices.
func (c *Coordinator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.asked = append(c.asked, r.URL.Path)
	blob, ok := c.blobs[strings.TrimPrefix(r.URL.Path, "/blob/")]
	c.mu.Unlock()
	switch {
	case c.Elsewhere != "":
		http.Redirect(w, r, c.Elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
	case ok:
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(blob))
	case r.URL.Path == "/v1/job/announced" && c.Announces:
		_, _ = w.Write(Encode(c.Job))
	case r.URL.Path == "/v1/join":
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		ws.SetReadLimit(mostFrame)
		s := &Session{Conn: &Conn{ws: ws}, over: make(chan struct{})}
		defer ws.CloseNow()
		if s.handshake(r.Context(), c) == nil {
			c.Sessions <- s
			<-s.over
		}
	default:
		http.NotFound(w, r)
	}
}

// A Session is a device that has enrolled.
type Session struct {
	*Conn
	Identity []byte
	over     chan struct{}
	once     sync.Once

	// Log is what this session is shown of a log, the coordinator's unless a lie exchanges
	// it; Shown is how many keys of it the device has been shown.
	Log   *Log
	Shown int
}

// End closes the connection.
func (s *Session) End() { s.once.Do(func() { close(s.over) }) }

func (s *Session) handshake(ctx context.Context, c *Coordinator) error {
	hello, err := s.Next(ctx)
	if err != nil {
		return err
	}
	job := Encode(c.Job)
	task := taskOf(job)
	welcome := Array{version, random(32), task, false, make([]byte, 32)}
	if c.Log != nil {
		welcome[4] = public(c.Log.Key)
	}
	if c.Lie != nil {
		c.Lie(Welcome, welcome)
	}
	if err := s.Send(ctx, Welcome, welcome); err != nil {
		return err
	}
	said := Frame{Body: welcome}
	enrol, err := s.Next(ctx)
	if err != nil {
		return err
	}
	if enrol.Kind != Enrol {
		return fmt.Errorf("attack: frame of kind %d for Enrol", enrol.Kind)
	}
	s.Identity = enrol.Bytes(0)
	seen := func(label string) []byte {
		return transcript(label, hello.Uint(0), hello.Uint(1), version, hello.Bytes(2), said.Bytes(1), said.Bytes(2), s.Identity)
	}
	signed := append(seen("starling/1 enrol"), byte(enrol.Uint(5)), 0)
	if !ed25519.Verify(s.Identity, append(signed, enrol.Bytes(3)...), enrol.Bytes(2)) {
		return errors.New("attack: the device's signature is not what the document says")
	}
	if !hmac.Equal(enrol.Bytes(1), proof(c.Secret, seen("starling/1 device proof"))) {
		return errors.New("attack: the device's proof is not what the document says")
	}
	enrolled := Array{proof(c.Secret, append(seen("starling/1 coordinator proof"), task...)), random(32), false, job, nil, Array{0, nil}}
	if c.Log != nil {
		c.mu.Lock()
		c.Log.Add(s.Identity, 1_700_000_060)
		s.Log, s.Shown = c.Log, len(c.Log.Leaves)
		enrolled[4], enrolled[5] = c.Log.Head(), c.Log.Growth(int(enrol.Uint(7)), s.Shown)
		c.mu.Unlock()
	}
	if c.Lie != nil {
		c.Lie(Enrolled, enrolled)
	}
	return s.Send(ctx, Enrolled, enrolled)
}

// Wait reads until a frame of a kind comes; others are an error.
func (s *Session) Wait(ctx context.Context, kind byte) (Frame, error) {
	f, err := s.Next(ctx)
	if err == nil && f.Kind != kind {
		err = fmt.Errorf("attack: the device says %d %v where %d is due", f.Kind, f.Body, kind)
	}
	return f, err
}

// Assign sends a plan.
func (s *Session) Assign(ctx context.Context, plan []byte) error {
	growth := Array{0, nil}
	if s.Log != nil {
		growth = s.Log.Growth(s.Shown, len(s.Log.Leaves))
		s.Shown = len(s.Log.Leaves)
	}
	return s.Send(ctx, Assignment, Array{plan, nil, 60_000, growth})
}

// Say sends a turn.
func (s *Session) Say(ctx context.Context, round uint64, turn int, payload []byte) error {
	return s.Send(ctx, Turn, Array{round, turn, payload, 60_000})
}

// Receive reads a turn of the device.
func (s *Session) Receive(ctx context.Context, turn int) ([]byte, error) {
	f, err := s.Wait(ctx, Turn)
	if err == nil && f.Uint(1) != uint64(turn) {
		err = fmt.Errorf("attack: the device answers turn %d with turn %d", turn, f.Uint(1))
	}
	return f.Bytes(2), err
}

// HearUpdate gathers the chunks of a masked message.
func (s *Session) HearUpdate(ctx context.Context) ([]byte, error) {
	var b []byte
	for {
		f, err := s.Wait(ctx, Update)
		if err != nil {
			return nil, err
		}
		if f.Uint(2) != uint64(len(b)) {
			return nil, fmt.Errorf("attack: a chunk at %d, %d are held", f.Uint(2), len(b))
		}
		if b = append(b, f.Bytes(3)...); uint64(len(b)) == f.Uint(1) {
			return b, nil
		}
	}
}

// Sum is the hash that names a blob.
func Sum(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}
