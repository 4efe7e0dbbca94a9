// Package origin groups connections by where they come from.
package origin

import "net/netip"

// Of is what counts as one origin of the address "host:port": an IPv4 address, or
// the /64 that anyone who has an IPv6 address has. All that is not an IP address is one,
// the zero Prefix.
func Of(address string) netip.Prefix {
	p, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip := p.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	prefix, _ := ip.Prefix(bits) // of a valid address
	return prefix
}
