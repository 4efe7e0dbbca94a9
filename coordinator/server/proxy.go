package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// mostForwarded bounds the proxies behind one another that are listened to.
const mostForwarded = 16

// cameFrom is the address "host:port" that a request came from: the connection's, or, where
// that is a proxy that is trusted, the last one on the way here that is not. What stands
// before it in X-Forwarded-For its sender can have made up. The port of an address that a
// proxy names is not known, and 0.
func (s *desk) cameFrom(r *http.Request) string {
	if len(s.trusted) == 0 {
		return r.RemoteAddr
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !s.trusts(at.Addr()) {
		return r.RemoteAddr
	}
	way := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	last := r.RemoteAddr
	for i, hop := range slices.Backward(way) {
		ip, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil || len(way)-i > mostForwarded {
			return last // of the proxy that says what cannot be read
		}
		last = netip.AddrPortFrom(ip.Unmap().WithZone(""), 0).String()
		if !s.trusts(ip) {
			break
		}
	}
	return last
}

func (s *desk) trusts(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(s.trusted, func(p netip.Prefix) bool { return p.Contains(ip) })
}
