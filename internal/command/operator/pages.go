package operator

import (
	"fmt"
	"io"
	"net/http"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/web"
)

// pages are what browsers are served. Where none can join by them, the operator is
// told before anybody tries.
func pages(to io.Writer) http.Handler {
	if why := web.Fault(edge.Protocol()); why != "" {
		fmt.Fprintln(to, "note: "+why)
	}
	return web.Handler(edge.Protocol())
}
