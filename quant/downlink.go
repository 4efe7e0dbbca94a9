package quant

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrBase is returned when a difference is applied to another vector than the
// one it was made against.
var ErrBase = errors.New("quant: difference against another vector")

// An update is one byte of kind, for a difference the first 16 bytes of the
// digest of what it adds to, and a compressed vector.
const (
	kindFull       = 0
	kindDifference = 1
	baseLen        = 16
)

// Digest identifies a vector by the SHA-256 of its values as little-endian float32. A device names
// by it the version that it holds.
func Digest(x []float32) [32]byte {
	h := sha256.New()
	var buf [4096]byte
	for len(x) > 0 {
		n := min(len(x), len(buf)/4)
		for i, v := range x[:n] {
			binary.LittleEndian.PutUint32(buf[4*i:], math.Float32bits(v))
		}
		h.Write(buf[:4*n])
		x = x[n:]
	}
	return [32]byte(h.Sum(nil))
}

// PackUpdate packs target for a device that holds held, nil if it holds
// nothing. The message is target in the given format and codec, or a
// difference to held if that is smaller and no less accurate: a difference is
// small, so a coarser format carries it with the same error. decoded is what
// UnpackUpdate will yield, to the bit. The next difference, and what the device
// trains from, are relative to decoded and not to target.
//
// Errors wrap ErrUnknown, ErrNotFinite, ErrRange, or ErrLength if held is not
// as long as target.
func PackUpdate(target, held []float32, format, codec string) (msg []byte, decoded []float32, err error) {
	if held != nil && len(held) != len(target) {
		return nil, nil, fmt.Errorf("%w: the device holds %d values, the update has %d", ErrLength, len(held), len(target))
	}
	msg, err = Compress([]byte{kindFull}, target, format, codec)
	if err != nil {
		return nil, nil, err
	}
	decoded = make([]float32, len(target))
	if err := DecompressInto(decoded, msg[1:]); err != nil {
		return nil, nil, err
	}
	if held == nil {
		return msg, decoded, nil
	}
	if diff, sum, ok := packDifference(target, held, decoded, format, codec, len(msg)); ok {
		return diff, sum, nil
	}
	return msg, decoded, nil
}

// packDifference looks for the smallest format in which the difference takes
// fewer than limit bytes and errs no more than full does.
func packDifference(target, held, full []float32, format, codec string, limit int) (msg []byte, decoded []float32, ok bool) {
	diff := make([]float32, len(target))
	for i, v := range target {
		diff[i] = v - held[i]
	}
	if checkFinite(diff) != nil {
		return nil, nil, false
	}
	bound := squaredError(target, full)
	digest := Digest(held)
	decoded = make([]float32, len(target))
	for k := len(formats) - 1; k >= 0; k-- {
		msg = append(append(msg[:0], kindDifference), digest[:baseLen]...)
		var err error
		if msg, err = Compress(msg, diff, formats[k].name, codec); err != nil {
			continue // it does not fit that format
		}
		if len(msg) < limit {
			if DecompressInto(decoded, msg[1+baseLen:]) == nil && addTo(decoded, held) == nil &&
				squaredError(target, decoded) <= bound {
				return msg, decoded, true
			}
		}
		if formats[k].name == format {
			break // a larger format than that of the whole cannot be smaller
		}
	}
	return nil, nil, false
}

// UnpackUpdate returns the n values of an update for a device that holds held,
// nil if it holds nothing. Errors wrap ErrCorrupt, ErrUnknown, or ErrBase.
func UnpackUpdate(msg []byte, held []float32, n int) ([]float32, error) {
	if len(msg) == 0 {
		return nil, fmt.Errorf("%w: empty update", ErrCorrupt)
	}
	kind, body := msg[0], msg[1:]
	switch {
	case kind == kindFull:
		out, err := Decompress(body, n)
		if err != nil {
			return nil, err
		}
		if len(out) != n {
			return nil, fmt.Errorf("%w: update of %d values, need %d", ErrCorrupt, len(out), n)
		}
		return out, nil
	case kind == kindDifference && len(body) >= baseLen:
		digest := Digest(held)
		if held == nil || len(held) != n || !bytes.Equal(digest[:baseLen], body[:baseLen]) {
			return nil, fmt.Errorf("%w: it is for %x", ErrBase, body[:baseLen])
		}
		out, err := Decompress(body[baseLen:], n)
		if err != nil {
			return nil, err
		}
		if len(out) != n {
			return nil, fmt.Errorf("%w: difference of %d values, need %d", ErrCorrupt, len(out), n)
		}
		return out, addTo(out, held)
	}
	if kind == kindPatch {
		return unpackPatch(body, held, n)
	}
	return nil, fmt.Errorf("%w: update of kind %d with %d bytes", ErrCorrupt, kind, len(body))
}

// addTo adds held to diff in place; the error wraps ErrCorrupt if a sum is not
// finite.
func addTo(diff, held []float32) error {
	for i := range diff {
		diff[i] += held[i]
	}
	if err := checkFinite(diff); err != nil {
		return fmt.Errorf("%w: difference overflows: %w", ErrCorrupt, err)
	}
	return nil
}

func squaredError(a, b []float32) (sum float64) {
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return sum
}
