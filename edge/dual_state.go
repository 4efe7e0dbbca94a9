//go:build !js

package edge

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// MarshalBinary encodes the state for simulations that continue after an interruption. A device
// writes it nowhere.
func (d *Dual) MarshalBinary() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := cbor.Marshal(d.kept)
	if err != nil {
		return nil, fmt.Errorf("edge: a dual variable: %w", err)
	}
	return b, nil
}

// UnmarshalBinary restores the state that MarshalBinary encoded.
func (d *Dual) UnmarshalBinary(b []byte) error {
	var k dualState
	if err := cbor.Unmarshal(b, &k); err != nil {
		return fmt.Errorf("edge: a dual variable: %w", err)
	}
	if len(k.Local) != len(k.Lambda) || len(k.Took) != len(k.Lambda) {
		return fmt.Errorf("edge: a dual variable of %d values for %d and %d", len(k.Lambda), len(k.Local), len(k.Took))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = k
	return nil
}
