package queue

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
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

	Listed bool  `cbor:"8,keyasint,omitempty"` // it may have any number of labels:
	Labels []int `cbor:"9,keyasint,omitempty"`

	Recording *recording `cbor:"10,keyasint,omitempty"`
}

// recording is an audio.Sound: its samples are little-endian float32, one after another,
// since a list of millions is more than a message may hold.
type recording struct {
	Rate    int    `cbor:"1,keyasint"`
	Samples []byte `cbor:"2,keyasint"`
}

// outcome is what an item's clients come to.
type outcome struct {
	Number uint64      `cbor:"1,keyasint"`
	Run    string      `cbor:"7,keyasint"`
	Worker string      `cbor:"8,keyasint"`           // what it calls itself
	Failed string      `cbor:"2,keyasint,omitempty"` // why there is none
	Sum    []byte      `cbor:"3,keyasint"`           // signed varints
	Empty  int         `cbor:"4,keyasint"`
	Places []int       `cbor:"5,keyasint"`
	Norms  [][]float64 `cbor:"6,keyasint"` // by Places
}

// Bounds of what is decoded.
const (
	maxItem     = 256 << 20 // bytes
	maxBase     = 2 << 30
	maxProgram  = 64 << 20
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
			for _, list := range [][]int{e.Tags, e.Labels} {
				for _, label := range list {
					if label < 0 || label >= it.Plan.Classes {
						return nil, fmt.Errorf("%w: label %d of %d", errMessage, label, it.Plan.Classes)
					}
				}
			}
			if e.Image != nil {
				if err := e.Image.Check(); err != nil {
					return nil, fmt.Errorf("%w: %w", errMessage, err)
				}
			}
			if e.Recording != nil {
				if _, err := e.Recording.open(); err != nil {
					return nil, fmt.Errorf("%w: %w", errMessage, err)
				}
			}
		}
	}
	return &it, nil
}

// flatten makes a client fit for a message. What stays in a file until it is used is read
// here: a worker has no such file.
func flatten(place int, c simulate.Client) (client, error) {
	out := client{Place: place, Number: c.Number, Seed: c.Seed}
	for i, e := range c.Set.Examples {
		flat := example{Text: e.Text, Label: e.Label, User: e.User, Provider: e.Provider, Words: e.Words, Tags: e.Tags, Listed: e.Labels != nil, Labels: e.Labels}
		var err error
		if e.Image != nil {
			flat.Image, err = flatImage(e.Image)
		}
		if e.Recording != nil && err == nil {
			flat.Recording, err = flatRecording(e.Recording)
		}
		if err != nil {
			return client{}, fmt.Errorf("queue: client %d, example %d: %w", c.Number, i, err)
		}
		out.Examples = append(out.Examples, flat)
	}
	return out, nil
}

func flatImage(m *dataset.Image) (*dataset.Image, error) {
	m, err := m.Decoded()
	if err != nil {
		return nil, err
	}
	if n := len(m.Pixels); n > maxExamples {
		return nil, fmt.Errorf("a picture of %d x %d has %d values, the limit of a queue's message is %d: scale it down", m.Width, m.Height, n, maxExamples)
	}
	return m, nil
}

func flatRecording(r *dataset.Recording) (*recording, error) {
	s, err := r.Decoded()
	if err != nil {
		return nil, err
	}
	out := &recording{Rate: s.Rate, Samples: make([]byte, 0, 4*len(s.Samples))}
	for _, v := range s.Samples {
		out.Samples = binary.LittleEndian.AppendUint32(out.Samples, math.Float32bits(v))
	}
	return out, nil
}

// open is the recording again; what nobody could learn from is refused.
func (r *recording) open() (*dataset.Recording, error) {
	if len(r.Samples)%4 != 0 || len(r.Samples) > 4*audio.MaxSamples {
		return nil, fmt.Errorf("a recording of %d bytes, want 4 for each of at most %d samples", len(r.Samples), audio.MaxSamples)
	}
	s := &audio.Sound{Rate: r.Rate, Samples: make([]float32, len(r.Samples)/4)}
	for i := range s.Samples {
		s.Samples[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.Samples[4*i:]))
	}
	return dataset.Recorded(s)
}

func (c client) set() (*dataset.Set, error) {
	s := &dataset.Set{}
	for _, e := range c.Examples {
		made := dataset.Example{Text: e.Text, Label: e.Label, User: e.User, Provider: e.Provider, Image: e.Image, Words: e.Words, Tags: e.Tags}
		if e.Listed {
			made.Labels = append([]int{}, e.Labels...)
		}
		if e.Recording != nil {
			var err error
			if made.Recording, err = e.Recording.open(); err != nil {
				return nil, fmt.Errorf("%w: %w", errMessage, err)
			}
		}
		s.Examples = append(s.Examples, made)
	}
	return s, nil
}

// tally checks an outcome against the item that it answers: its clients, and what these can
// come to.
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
	if err := o.check(places, max(1, a.Providers)); err != nil {
		return nil, err
	}
	if err := a.CheckSum(t.Sum, len(places)-o.Empty); err != nil {
		return nil, fmt.Errorf("%w: %w", errMessage, err)
	}
	for i, at := range places {
		t.Norms[at] = o.Norms[i]
	}
	t.Empty = o.Empty
	return t, nil
}

// check refuses an outcome that is not of an item's places, has norms that are none, or more
// of them for a client than it has units.
func (o *outcome) check(places []int, units int) error {
	if len(o.Places) != len(places) || len(o.Norms) != len(places) || o.Empty < 0 || o.Empty > len(places) {
		return fmt.Errorf("%w: %d places with %d norms, %d empty, of %d clients", errMessage, len(o.Places), len(o.Norms), o.Empty, len(places))
	}
	without := 0
	for i, at := range o.Places {
		if at != places[i] {
			return fmt.Errorf("%w: place %d, want %d", errMessage, at, places[i])
		}
		if len(o.Norms[i]) > units {
			return fmt.Errorf("%w: place %d has %d norms, at most %d", errMessage, at, len(o.Norms[i]), units)
		}
		if len(o.Norms[i]) == 0 {
			without++
		}
		for _, v := range o.Norms[i] {
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("%w: place %d has a norm of %v", errMessage, at, v)
			}
		}
	}
	if o.Empty > without {
		return fmt.Errorf("%w: %d clients without examples, %d without norms", errMessage, o.Empty, without)
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

// has reports whether bytes are stored, and young enough that what refers to them now will
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

// get fetches at most so many bytes by their hash and checks them. What the store says of
// their length is its word only.
func (b *Broker) get(ctx context.Context, from jetstream.ObjectStore, sum blob, most int64) ([]byte, error) {
	info, err := from.GetInfo(ctx, sum.String())
	if err != nil {
		return nil, fmt.Errorf("queue: blob %s: %w", sum, err)
	}
	if most < 0 || info.Size > uint64(most) {
		return nil, fmt.Errorf("%w: blob %s has %d bytes, the limit is %d", errMessage, sum, info.Size, most)
	}
	object, err := from.Get(ctx, sum.String())
	if err != nil {
		return nil, fmt.Errorf("queue: blob %s: %w", sum, err)
	}
	defer object.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(object, most+1))
	if err != nil {
		return nil, fmt.Errorf("queue: blob %s: %w", sum, err)
	}
	if int64(len(data)) > most || blob(sha256.Sum256(data)) != sum {
		return nil, fmt.Errorf("%w: blob %s has other bytes", errMessage, sum)
	}
	return data, nil
}

// Large messages go through the object store: a first byte tells.
const (
	inline = 0
	stored = 1
)

// store is where messages of a kind lie that are too large for their stream.
func (b *Broker) store(kind string) jetstream.ObjectStore {
	if kind == sealedResult {
		return b.sums
	}
	return b.objects
}

// wrap makes what is published of a message: encoded, and sealed with the run's key.
func (b *Broker) wrap(ctx context.Context, kind string, m any) ([]byte, error) {
	data, err := cbor.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	if data, err = b.key.seal(kind, data); err != nil {
		return nil, err
	}
	if int64(len(data)) < b.conn.MaxPayload()/2 {
		return append([]byte{inline}, data...), nil
	}
	sum := blob(sha256.Sum256(data))
	if _, err := b.store(kind).PutBytes(ctx, sum.String(), data); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return append([]byte{stored}, sum[:]...), nil
}

// unwrap opens what wrap made, of at most so many bytes.
func (b *Broker) unwrap(ctx context.Context, kind string, data []byte, most int64) ([]byte, error) {
	switch {
	case len(data) > 0 && data[0] == inline && int64(len(data)) <= most:
		return b.key.open(kind, data[1:])
	case len(data) == 1+sha256.Size && data[0] == stored:
		sealed, err := b.get(ctx, b.store(kind), blob(data[1:]), most)
		if err != nil {
			return nil, err
		}
		return b.key.open(kind, sealed)
	}
	return nil, fmt.Errorf("%w of %d bytes, at most %d", errMessage, len(data), most)
}
