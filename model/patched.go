package model

import (
	"encoding/json"
	"fmt"
)

// Patched is how a page's picture is read without an encoder of its own (Nguyen et al. 2024,
// section 4.3, after UDOP, Tang et al. 2023): patches go through a linear map, a masked
// autoencoder's. What a patch looks like is added to the tokens that are in it, and such a
// patch is left out; the others are read as tokens of their own. Zero is none.
//
// A token whose box is empty at the page's corner, or the whole page, is in no patch. A
// patch that is left out keeps its place in the sequence, which nothing attends to: another's
// distance from the tokens does not depend on what is written where.
type Patched struct {
	ViT // what pixels become, and what patches are

	// What the papers leave open, each as UDOP's program does it unless it says otherwise.
	Overlap  bool `json:"overlap,omitempty"`  // a token gets the mean of all patches that its box overlaps, not only the one with its centre
	Unplaced bool `json:"unplaced,omitempty"` // patches have no boxes: else their own, through the map of the tokens' boxes
	First    bool `json:"first,omitempty"`    // patches precede the tokens; else they follow
}

// On reports whether patches are read.
func (p Patched) On() bool { return p != Patched{} }

// check checks it beside how many coordinates boxes have.
func (p Patched) check(boxes int) error {
	err := p.ViT.check(maxPatches)
	switch {
	case err != nil:
	case p.NoBias || p.BEiT != (BEiT{}):
		err = fmt.Errorf("%w: patches are read without attention, and it says how", ErrConfig)
	case boxes < 2:
		err = fmt.Errorf("%w: max_2d_position_embeddings is %d, want 2 to %d: boxes say which patch a token is in", ErrConfig, boxes, PageSide+1)
	}
	if err != nil {
		return fmt.Errorf("patch_config: %w", err)
	}
	return nil
}

// parsePatched reads patch_config, whose defaults are a masked autoencoder's.
func parsePatched(raw json.RawMessage) (p Patched, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return Patched{}, nil
	}
	p.ViT = ViT{ImageSize: Square(224), PatchSize: Square(16), Channels: 3,
		Mean: [3]float64{0.485, 0.456, 0.406}, Std: [3]float64{0.229, 0.224, 0.225}}
	if err := json.Unmarshal(raw, &p); err != nil {
		return Patched{}, fmt.Errorf("patch_config: %w", err)
	}
	return p, nil
}

// keys are patch_config of a folder's config.json.
func (p Patched) keys() map[string]any {
	return map[string]any{"image_size": p.ImageSize, "patch_size": p.PatchSize, "num_channels": p.Channels,
		"overlap": p.Overlap, "unplaced": p.Unplaced, "first": p.First}
}

// Places are the boxes of patches, among coordinates 0..boxes-1.
func (p Patched) Places(boxes int) []int32 {
	rows, columns := p.Grid()
	var out []int32
	for i := range p.Patches() {
		y, x := i/columns, i%columns
		for _, at := range [][2]int{{x, columns}, {y, rows}, {x + 1, columns}, {y + 1, rows}} {
			out = append(out, int32(at[0]*(boxes-1)/at[1]))
		}
	}
	return out
}
