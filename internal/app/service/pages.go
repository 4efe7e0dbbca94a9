package service

import (
	"fmt"
	"io"
	"net/http"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/web"
)

// Pages serves the pages for browsers. It tells the operator at once if browsers cannot join by them.
func Pages(to io.Writer) http.Handler {
	if why := web.Fault(edge.Protocol()); why != "" {
		fmt.Fprintln(to, "note: "+why)
	}
	return web.Handler(edge.Protocol())
}

// forBrowsers is the line that says where browsers join; "" where a fault keeps them from it, which was said.
func forBrowsers(fault, url, token string) string {
	if fault != "" {
		return ""
	}
	return fmt.Sprintf("or open %s/#%s in a browser\n", url, token)
}

// Link is the line that says where a browser joins by a token; "" where this program has no pages.
func Link(token string) string { return link(web.Fault(edge.Protocol()), token) }

func link(fault, token string) string {
	t, err := wire.ParseToken(token)
	if err != nil {
		return ""
	}
	return forBrowsers(fault, t.URL, token)
}

// Dashboard is the operator's page at an address. The token is behind the #: browsers do not send
// it, and the page removes it from the address.
func Dashboard(url, adminToken string) string { return url + "/dashboard#" + adminToken }
