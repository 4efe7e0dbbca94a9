package wire

import (
	"errors"
	"fmt"
)

// Masked is an update that already carries its masks. secagg's Masked is the
// one type that has these methods; nothing else can become an Update, so that
// an unmasked vector cannot be framed by mistake.
type Masked interface {
	// AppendBinary appends the update's canonical bytes.
	AppendBinary(dst []byte) ([]byte, error)
	// MaskedUpdate marks the type as masked; it does nothing.
	MaskedUpdate()
}

// An Update is one chunk of a masked update: turn 3 of the device.
type Update struct {
	_      struct{} `cbor:",toarray"`
	Round  uint64
	Total  uint64 // bytes of the whole update
	Offset uint64
	Data   []byte // 1..MaxChunk bytes

	masked bool // made by Upload.Chunk or by Decode: Append refuses others
}

func (*Update) Kind() Kind { return KindUpdate }

// An Upload is a masked update on its way. Its bytes do not change: a
// reconnect sends the same ones again.
type Upload struct {
	round uint64
	bytes []byte
}

// NewUpload encodes a masked update for sending in round.
func NewUpload(round uint64, m Masked) (*Upload, error) {
	b, err := m.AppendBinary(nil)
	if err != nil {
		return nil, fmt.Errorf("wire: masked update: %w", err)
	}
	if err := within("update.total", len(b), 1, MaxUpdate); err != nil {
		return nil, err
	}
	return &Upload{round: round, bytes: b}, nil
}

// Size is the update's length in bytes.
func (u *Upload) Size() uint64 { return uint64(len(u.bytes)) }

// Chunk returns the message that starts at offset, and the offset behind it.
// At the end it returns nil.
func (u *Upload) Chunk(offset uint64) (*Update, uint64) {
	if offset >= u.Size() {
		return nil, offset
	}
	end := min(offset+sentChunk, u.Size())
	return &Update{Round: u.round, Total: u.Size(), Offset: offset, Data: u.bytes[offset:end], masked: true}, end
}

// ErrOverlap is a chunk whose bytes differ from those held at its place.
var ErrOverlap = errors.New("wire: chunk differs from the bytes held")

// An Assembly gathers an update's chunks on the coordinator. It allocates what
// the round's size says, not what a chunk claims.
type Assembly struct {
	round uint64
	total uint64
	bytes []byte
}

// NewAssembly expects an update of exactly total bytes for round.
func NewAssembly(round, total uint64) (*Assembly, error) {
	if err := within("update.total", total, 1, MaxUpdate); err != nil {
		return nil, err
	}
	return &Assembly{round: round, total: total}, nil
}

// Add takes the next chunk, whose data is the Assembly's from then on. A chunk that was
// seen before must be the same and changes nothing; a gap is an error.
func (a *Assembly) Add(u *Update) error {
	switch have := uint64(len(a.bytes)); {
	case u.Round != a.round:
		return fmt.Errorf("wire: chunk of round %d in round %d", u.Round, a.round)
	case u.Total != a.total:
		return &LimitError{Field: "update.total", Have: u.Total, Least: a.total, Most: a.total}
	case u.Offset > have:
		return &LimitError{Field: "update.offset", Have: u.Offset, Most: have}
	case u.Offset+uint64(len(u.Data)) > a.total:
		return &LimitError{Field: "update.data", Have: u.Offset + uint64(len(u.Data)), Most: a.total}
	default:
		overlap := min(have-u.Offset, uint64(len(u.Data)))
		if string(a.bytes[u.Offset:u.Offset+overlap]) != string(u.Data[:overlap]) {
			return ErrOverlap
		}
		if a.bytes == nil && uint64(len(u.Data)) == a.total {
			a.bytes = u.Data // all of it at once, as most are
			return nil
		}
		if a.bytes == nil {
			a.bytes = make([]byte, 0, min(a.total, 4*MaxChunk))
		}
		a.bytes = append(a.bytes, u.Data[overlap:]...)
		return nil
	}
}

// Received is the number of bytes held.
func (a *Assembly) Received() uint64 { return uint64(len(a.bytes)) }

// Bytes returns the update once all of it is there.
func (a *Assembly) Bytes() ([]byte, bool) { return a.bytes, uint64(len(a.bytes)) == a.total }
