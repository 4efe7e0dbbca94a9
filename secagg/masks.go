package secagg

import (
	"bytes"
	"fmt"

	"github.com/starling-fl/starling/internal/protocol/cbor"
)

// Masks is the set of masks that is still in a shard's running sum, so that another process can add
// them up. It holds no masked vector and no sum. It is secret all the same: whoever has both it and
// the masked vectors can compute the survivors' sum, as the Server can. It never holds the
// self-mask and the mask key of the same device, so no single vector can be unmasked with it.
type Masks struct {
	dim, width int
	roster     Hash
	survivors  Set    // U3
	selves     []byte // the self-masks' keys, in roster order
	dropped    Set    // U2 without U3
	private    []byte // their mask keys, in roster order
	peers      []byte // public mask keys of the survivors, where anybody dropped
}

// Sum adds the masks up modulo 2^Width. This is the expensive part of Unmask.
func (m *Masks) Sum() []uint32 {
	var plus, minus []maskKey
	defer func() { clear(plus); clear(minus) }()
	for at := 0; at < len(m.selves); at += maskKeyLen {
		plus = append(plus, maskKey(m.selves[at:at+maskKeyLen]))
	}
	at := 0
	for i := range 8 * len(m.dropped) {
		if !m.dropped.Has(i) {
			continue
		}
		k := [scalarSize]byte(m.private[at : at+scalarSize])
		at += scalarSize
		plus, minus = m.pairMasks(i, x25519Private(&k), plus, minus)
	}
	sum := make([]uint32, m.dim)
	addMasks(sum, plus, minus, m.width)
	for i := range sum {
		sum[i] &= ringMask(m.width)
	}
	return sum
}

// pairMasks appends the masks that survivors added with a view to device i,
// which dropped. A survivor before i added its mask, one after i took it off.
func (m *Masks) pairMasks(i int, priv dhKey, plus, minus []maskKey) (p, n []maskKey) {
	peers := m.peers
	for v := range 8 * len(m.survivors) {
		if !m.survivors.Has(v) {
			continue
		}
		k, err := pairMaskKey(priv, peers[:maskKeySize], &m.roster, i, v)
		if err != nil {
			panic(err) // keys of low order are in no roster, and are not decoded
		}
		peers = peers[maskKeySize:]
		if v < i {
			plus = append(plus, k)
		} else {
			minus = append(minus, k)
		}
	}
	return plus, minus
}

// Erase overwrites the keys with zeros.
func (m *Masks) Erase() {
	clear(m.selves)
	clear(m.private)
}

// Pack encodes a sum returned by Sum in PackedSize bytes. Unpack is its inverse.
func (m *Masks) Pack(sum []uint32) []byte { return pack(sum, m.width) }

// PackedSize is the length of a sum's encoding.
func (m *Masks) PackedSize() int { return packedSize(m.dim, m.width) }

// Unpack decodes what Pack made; errors wrap ErrLength or ErrRange.
func (m *Masks) Unpack(p []byte) ([]uint32, error) {
	if err := checkPacked(p, m.dim, m.width); err != nil {
		return nil, err
	}
	sum := make([]uint32, m.dim)
	addPacked(sum, p, m.width)
	return sum, nil
}

// masksVersion changes with what Sum makes of the same bytes.
const masksVersion = 1

// AppendBinary appends the canonical encoding. It holds keys: keep it as secret as they are.
func (m *Masks) AppendBinary(b []byte) ([]byte, error) {
	b = cbor.AppendUint(cbor.AppendArray(b, 9), masksVersion)
	b = cbor.AppendUint(cbor.AppendUint(b, uint64(m.dim)), uint64(m.width))
	for _, v := range [][]byte{m.roster[:], m.survivors, m.selves, m.dropped, m.private, m.peers} {
		b = cbor.AppendBytes(b, v)
	}
	return b, nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding, ErrSet, ErrLength or ErrKey.
func (m *Masks) UnmarshalBinary(data []byte) error {
	var v Masks
	r := cbor.NewReader(data)
	r.Array(9, 9, "masks")
	r.Literal(masksVersion, "version")
	v.dim, v.width = int(r.Uint(MaxDim, "symbols")), int(r.Uint(MaxWidth, "width"))
	r.Fixed(v.roster[:], "hash")
	v.survivors = bytes.Clone(r.Bytes(1, MaxShard/8, "survivors"))
	v.selves = bytes.Clone(r.Bytes(0, MaxShard*maskKeyLen, "self-masks"))
	v.dropped = bytes.Clone(r.Bytes(1, MaxShard/8, "dropped"))
	v.private = bytes.Clone(r.Bytes(0, MaxShard*scalarSize, "mask keys"))
	v.peers = bytes.Clone(r.Bytes(0, MaxShard*maskKeySize, "public mask keys"))
	if err := done(&r); err != nil {
		return err
	}
	peers := 0
	if v.dropped.Len() > 0 {
		peers = v.survivors.Len()
	}
	switch {
	case v.dim < 1 || v.width < 1:
		return fmt.Errorf("%w: %d symbols of %d bits", ErrEncoding, v.dim, v.width)
	case len(v.survivors) != len(v.dropped):
		return fmt.Errorf("%w: survivors and dropped are of two shards", ErrSet)
	case len(v.selves) != maskKeyLen*v.survivors.Len():
		return fmt.Errorf("%w: self-masks of %d bytes, of %d survivors", ErrLength, len(v.selves), v.survivors.Len())
	case len(v.private) != scalarSize*v.dropped.Len():
		return fmt.Errorf("%w: mask keys of %d bytes, of %d dropped", ErrLength, len(v.private), v.dropped.Len())
	case len(v.peers) != maskKeySize*peers:
		return fmt.Errorf("%w: public mask keys of %d bytes, of %d survivors", ErrLength, len(v.peers), peers)
	}
	for i := range v.survivors {
		if v.survivors[i]&v.dropped[i] != 0 {
			return fmt.Errorf("%w: a device that survived and dropped", ErrSet)
		}
	}
	for at := 0; at < len(v.peers); at += maskKeySize {
		if hasLowOrder(v.peers[at : at+maskKeySize]) {
			return fmt.Errorf("%w: public mask key %d has low order", ErrKey, at/maskKeySize)
		}
	}
	*m = v
	return nil
}
