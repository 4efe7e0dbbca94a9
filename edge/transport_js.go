package edge

import (
	"net/http"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/wire"
)

// host names the code shape of programs that this build runs best.
const host = "v8"

// dialOptions: a browser checks certificates itself and lets no page pin one.
func dialOptions(wire.Token, NetDialer) *websocket.DialOptions { return nil }

// NewHTTPClient makes the client that blobs are fetched with by default: the
// browser's own fetch.
func NewHTTPClient(wire.Token, NetDialer) *http.Client { return &http.Client{} }
