package service

import (
	"fmt"
	"io"
	"net/http"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/web"
)

// Pages serves the pages for browsers. It tells the operator at once if browsers cannot join by them.
func Pages(to io.Writer) http.Handler {
	if why := web.Fault(edge.Protocol()); why != "" {
		fmt.Fprintln(to, "note: "+why)
	}
	return web.Handler(edge.Protocol())
}

// Dashboard is the operator's page at an address. The token is behind the #: browsers do not send
// it, and the page removes it from the address.
func Dashboard(url, adminToken string) string { return url + "/dashboard#" + adminToken }
