package edge

import (
	"net/http"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/wire"
)

// host names the code shape of programs that this build runs best.
const host = "v8"

// dialOptions: a browser checks certificates itself and lets no page pin one.
func dialOptions(wire.Token) *websocket.DialOptions { return nil }

func httpClient(wire.Token) *http.Client { return &http.Client{} }
