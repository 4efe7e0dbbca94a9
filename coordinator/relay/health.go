package relay

import (
	"fmt"
	"net/http"
)

// Health answers /healthz while the process works, /readyz where there is an owner, and
// /metrics with two figures.
func (g *Gateway) Health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !g.Ready() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		ready := 0
		if g.Ready() {
			ready = 1
		}
		fmt.Fprintf(w, "# HELP starling_gateway_connections Devices' connections that are passed on.\n# TYPE starling_gateway_connections gauge\n"+
			"starling_gateway_connections %d\n# HELP starling_gateway_linked 1 while there is an owner to pass them on to.\n"+
			"# TYPE starling_gateway_linked gauge\nstarling_gateway_linked %d\n", g.Connections(), ready)
	})
	return mux
}
