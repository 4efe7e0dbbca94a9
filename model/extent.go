package model

import (
	"encoding/json"
	"fmt"
)

// Extent is the size of an image or a patch in pixels. In JSON it is a number where both
// are equal, else [height, width], as Hugging Face's ViTConfig has it.
type Extent struct{ Height, Width int }

// Square is an extent of one side.
func Square(side int) Extent { return Extent{side, side} }

func (e Extent) String() string { return fmt.Sprintf("%d x %d", e.Height, e.Width) }

// MarshalJSON implements json.Marshaler.
func (e Extent) MarshalJSON() ([]byte, error) {
	if e.Height == e.Width {
		return json.Marshal(e.Height)
	}
	return json.Marshal([]int{e.Height, e.Width})
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Extent) UnmarshalJSON(data []byte) error {
	var side int
	if json.Unmarshal(data, &side) == nil {
		*e = Square(side)
		return nil
	}
	var both []int
	if err := json.Unmarshal(data, &both); err != nil || len(both) != 2 {
		return fmt.Errorf("a size is %.40s, want a number of pixels or [height, width]", data)
	}
	*e = Extent{both[0], both[1]}
	return nil
}
