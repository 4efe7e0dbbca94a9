//go:build !js

// Package columnar reads tables that are stored column by column, Parquet and Arrow, row by row. Files may be
// strangers': what is read at once is bounded.
//
//	err := columnar.Parquet(f, size, func(row int, object []byte) error {
//		return json.Unmarshal(object, &example)
//	})
package columnar

import (
	"errors"
	"fmt"
)

const (
	// MaxRow bounds one row as JSON, in bytes.
	MaxRow = 1 << 20
	// maxFooter bounds what a file says about itself, in bytes.
	maxFooter = 16 << 20
	// maxPage bounds what one page of a column, or one batch's buffer, unpacks to, in bytes.
	maxPage = 64 << 20
	// maxHeld bounds the pages that are held at once, in bytes.
	maxHeld = 512 << 20
	// maxColumns bounds columns, those within others included.
	maxColumns = 4096
	// maxChunks bounds columns times groups of rows.
	maxChunks = 1 << 18
	// maxDepth bounds columns within columns.
	maxDepth = 16
)

// ErrFormat is wrapped by every error about a damaged or unsupported file.
var ErrFormat = errors.New("columnar")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)
}
