//go:build !xla || !cgo

package xla

import "fmt"

// Open refuses: this program has no XLA.
func Open(string) (*Engine, error) {
	return nil, fmt.Errorf("%w: this program was built without it: CGO_ENABLED=1 go build -C lab -tags xla ./cmd/starling "+
		"(a C compiler is needed), or make build XLA=1", ErrPlugin)
}
