//go:build !js

package quant

import (
	"testing"

	"github.com/starling-fl/starling/internal/generated"
)

// TestGenerated: the assembly in git is what asm writes.
func TestGenerated(t *testing.T) { generated.Assembly(t, "hadamard", "quant") }
