package edge

import "context"

// A Conn carries frames to and from the coordinator. Read and Write may be used by one goroutine
// each; Close may be called at any time and ends both.
type Conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, frame []byte) error
	Close() error
}
