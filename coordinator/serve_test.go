package coordinator

import (
	"encoding/hex"
	"io"
	"net/http"

	"github.com/starling-fl/starling/coordinator/internal/socket"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// handler serves players as package server does devices, which this package's own
// tests cannot import: sessions and blobs, nothing else.
func handler(c *Coordinator) http.Handler {
	mux := http.NewServeMux()
	terms := socket.Terms{Most: c.MaxFrame, Room: socket.NewRoom(socket.DefaultRoom), Text: ErrNotBinary, Long: ErrTooLong}
	mux.HandleFunc(wire.Path, func(w http.ResponseWriter, r *http.Request) {
		_ = c.Attend(func() (Conn, error) {
			conn, err := socket.Accept(w, r, terms)
			return seat{conn, Peer{Address: r.RemoteAddr}}, err
		})
	})
	mux.HandleFunc(wire.BlobPath+"{name}", func(w http.ResponseWriter, r *http.Request) {
		name, err := hex.DecodeString(r.PathValue("name"))
		if err != nil || len(name) != 32 {
			http.Error(w, "no name", http.StatusBadRequest)
			return
		}
		data, _ := c.Blob([32]byte(name))
		_, _ = io.Copy(w, io.NewSectionReader(data, 0, data.Size()))
	})
	return mux
}

type seat struct {
	*socket.Socket
	peer Peer
}

func (s seat) Peer() Peer { return s.peer }
