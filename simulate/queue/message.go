package queue

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/simulate"
)

// item is some clients of a round's cohort.
type item struct {
	Version string        `cbor:"1,keyasint"` // of the program that made it
	Run     string        `cbor:"2,keyasint"`
	Number  uint64        `cbor:"3,keyasint"` // in the run, never reused
	Plan    simulate.Plan `cbor:"4,keyasint"`
	Base    blob          `cbor:"5,keyasint"`
	Program blob          `cbor:"6,keyasint"`
	Start   blob          `cbor:"7,keyasint"`
	Clients []client      `cbor:"8,keyasint"`
	Engine  string        `cbor:"9,keyasint"` // that trains: bits differ between engines
}

// blob names bytes in the object store.
type blob [sha256.Size]byte

func (b blob) String() string { return hex.EncodeToString(b[:]) }

// client is a simulate.Client, flat.
type client struct {
	Place    int       `cbor:"1,keyasint"` // in the cohort
	Number   int       `cbor:"2,keyasint"`
	Seed     []byte    `cbor:"3,keyasint"`
	Examples []example `cbor:"4,keyasint"`
}

type example struct {
	Text     string `cbor:"1,keyasint"`
	Label    int    `cbor:"2,keyasint"`
	User     string `cbor:"3,keyasint,omitempty"`
	Provider string `cbor:"4,keyasint,omitempty"`

	Image *dataset.Image `cbor:"5,keyasint,omitempty"`
	Words []string       `cbor:"6,keyasint,omitempty"`
	Tags  []int          `cbor:"7,keyasint,omitempty"`
}

// outcome is what an item's clients come to.
type outcome struct {
	Number uint64      `cbor:"1,keyasint"`
	Failed string      `cbor:"2,keyasint,omitempty"` // why the run cannot go on
	Sum    []byte      `cbor:"3,keyasint"`           // signed varints
	Empty  int         `cbor:"4,keyasint"`
	Places []int       `cbor:"5,keyasint"`
	Norms  [][]float64 `cbor:"6,keyasint"` // by Places
}

// Bounds of what is decoded.
const (
	maxMessage  = 256 << 20 // bytes
	maxClients  = 1 << 12
	maxExamples = 1 << 22
)

var errMessage = errors.New("queue: message")

var decoder = func() cbor.DecMode {
	m, err := cbor.DecOptions{MaxArrayElements: maxExamples, MaxMapPairs: 64, MaxNestedLevels: 8}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}()

func decodeItem(b []byte) (*item, error) {
	var it item
	if err := decoder.Unmarshal(b, &it); err != nil {
		return nil, fmt.Errorf("%w: %w", errMessage, err)
	}
	if len(it.Clients) == 0 || len(it.Clients) > maxClients {
		return nil, fmt.Errorf("%w: %d clients, want 1..%d", errMessage, len(it.Clients), maxClients)
	}
	for _, c := range it.Clients {
		for _, e := range c.Examples {
			if e.Label < 0 || e.Label >= it.Plan.Classes {
				return nil, fmt.Errorf("%w: label %d of %d", errMessage, e.Label, it.Plan.Classes)
			}
			for _, tag := range e.Tags {
				if tag < 0 || tag >= it.Plan.Classes {
					return nil, fmt.Errorf("%w: tag %d of %d", errMessage, tag, it.Plan.Classes)
				}
			}
			if e.Image != nil {
				if err := e.Image.Check(); err != nil {
					return nil, fmt.Errorf("%w: %w", errMessage, err)
				}
			}
		}
	}
	return &it, nil
}

// flatten makes a client fit for a message.
func flatten(place int, c simulate.Client) client {
	out := client{Place: place, Number: c.Number, Seed: c.Seed}
	for _, e := range c.Set.Examples {
		out.Examples = append(out.Examples, example{e.Text, e.Label, e.User, e.Provider, e.Image, e.Words, e.Tags})
	}
	return out
}

func (c client) set() *dataset.Set {
	s := &dataset.Set{}
	for _, e := range c.Examples {
		s.Examples = append(s.Examples, dataset.Example{Text: e.Text, Label: e.Label, User: e.User, Provider: e.Provider, Image: e.Image, Words: e.Words, Tags: e.Tags})
	}
	return s
}

// tally checks an outcome against the item that it answers.
func (o *outcome) tally(a *simulate.Assignment, places []int, n int) (*simulate.Tally, error) {
	t := a.NewTally(n)
	for i := range t.Sum {
		v, k := binary.Varint(o.Sum)
		if k <= 0 {
			return nil, fmt.Errorf("%w: sum of %d coordinates ends at %d", errMessage, len(t.Sum), i)
		}
		t.Sum[i], o.Sum = v, o.Sum[k:]
	}
	if len(o.Sum) != 0 {
		return nil, fmt.Errorf("%w: sum is longer than %d coordinates", errMessage, len(t.Sum))
	}
	if err := o.check(places); err != nil {
		return nil, err
	}
	for i, at := range places {
		t.Norms[at] = o.Norms[i]
	}
	t.Empty = o.Empty
	return t, nil
}

// check refuses an outcome that is not of an item's places, or has norms that are none.
func (o *outcome) check(places []int) error {
	if len(o.Places) != len(places) || len(o.Norms) != len(places) || o.Empty < 0 || o.Empty > len(places) {
		return fmt.Errorf("%w: %d places with %d norms, %d empty, of %d clients", errMessage, len(o.Places), len(o.Norms), o.Empty, len(places))
	}
	for i, at := range o.Places {
		if at != places[i] {
			return fmt.Errorf("%w: place %d, want %d", errMessage, at, places[i])
		}
		for _, v := range o.Norms[i] {
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("%w: place %d has a norm of %v", errMessage, at, v)
			}
		}
	}
	return nil
}

func varints(sum []int64) []byte {
	b := make([]byte, 0, 2*len(sum))
	for _, v := range sum {
		b = binary.AppendVarint(b, v)
	}
	return b
}

// has says whether bytes are stored, and young enough that what refers to them now will
// still find them: the store drops all that is older than keepBlobs.
func (b *Broker) has(ctx context.Context, sum blob) (bool, error) {
	info, err := b.objects.GetInfo(ctx, sum.String())
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("queue: blob %s: %w", sum, err)
	}
	return time.Since(info.ModTime) < keepBlobs/2, nil
}

// put stores bytes under their hash, where they are not there already.
func (b *Broker) put(ctx context.Context, data []byte) (blob, error) {
	sum := blob(sha256.Sum256(data))
	if there, err := b.has(ctx, sum); err != nil || there {
		return sum, err
	}
	if _, err := b.objects.PutBytes(ctx, sum.String(), data); err != nil {
		return sum, fmt.Errorf("queue: %w", err)
	}
	return sum, nil
}

// get fetches bytes by their hash and checks them.
func (b *Broker) get(ctx context.Context, sum blob) ([]byte, error) {
	info, err := b.objects.GetInfo(ctx, sum.String())
	if err != nil {
		return nil, fmt.Errorf("queue: blob %s: %w", sum, err)
	}
	if info.Size > maxMessage*8 {
		return nil, fmt.Errorf("queue: blob %s has %d bytes, the limit is %d", sum, info.Size, maxMessage*8)
	}
	data, err := b.objects.GetBytes(ctx, sum.String())
	if err != nil {
		return nil, fmt.Errorf("queue: blob %s: %w", sum, err)
	}
	if blob(sha256.Sum256(data)) != sum {
		return nil, fmt.Errorf("queue: blob %s has other bytes", sum)
	}
	return data, nil
}

// Large messages go through the object store: a first byte tells.
const (
	inline = 0
	stored = 1
)

// wrap makes what is published of an encoded message.
func (b *Broker) wrap(ctx context.Context, m any) ([]byte, error) {
	data, err := cbor.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	if int64(len(data)) < b.conn.MaxPayload()/2 {
		return append([]byte{inline}, data...), nil
	}
	sum, err := b.put(ctx, data)
	return append([]byte{stored}, sum[:]...), err
}

func (b *Broker) unwrap(ctx context.Context, data []byte) ([]byte, error) {
	switch {
	case len(data) > 0 && data[0] == inline:
		return data[1:], nil
	case len(data) == 1+sha256.Size && data[0] == stored:
		return b.get(ctx, blob(data[1:]))
	}
	return nil, fmt.Errorf("%w of %d bytes", errMessage, len(data))
}
