//go:build !js

package edge

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// dialError says why there is no connection, as ErrUnreachable where trying
// again would not help. A browser does not tell.
func dialError(t wire.Token, resp *http.Response, err error) error {
	if errors.Is(err, ErrPin) {
		return fmt.Errorf("edge: %s: %w", t.URL, err)
	}
	if why := permanent(err); why != "" {
		return fmt.Errorf("%w: %s: %s: %w", ErrUnreachable, t.URL, why, err)
	}
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return fmt.Errorf("edge: %s: %w", t.URL, err)
	}
	answer := fmt.Sprintf("%s answers %d %s", t.URL, resp.StatusCode, http.StatusText(resp.StatusCode))
	switch code := resp.StatusCode; {
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		return fmt.Errorf("edge: %s", answer) // a coordinator that starts, or a proxy whose coordinator does
	}
	return fmt.Errorf("%w: %s: it is not a Starling coordinator", ErrUnreachable, answer)
}

// permanent says what of a failed connection will not pass by itself; "" where
// it may.
func permanent(err error) string {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.As(err, &verification):
		return "its certificate is not trusted: join with the token, which pins it"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "it does not speak TLS: is the address http://?"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "there is no such host"
	}
	return ""
}
