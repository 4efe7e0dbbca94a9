//go:build !js

package kernel

import (
	"testing"

	"github.com/starling-fl/starling/internal/generated"
)

// TestGenerated: the assembly in git is what asm and neon write.
func TestGenerated(t *testing.T) {
	generated.Assembly(t, "tile", "kernel")
	generated.AssemblyFor(t, "./neon", "arm64", "tile", "kernel")
}
