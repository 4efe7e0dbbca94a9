//go:build !js

package edge

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/wire"
)

// host names the code shape of programs that this build runs best.
const host = "wazero"

func dialOptions(t wire.Token) *websocket.DialOptions {
	return &websocket.DialOptions{HTTPClient: httpClient(t), CompressionMode: websocket.CompressionDisabled}
}

// httpClient trusts exactly the pinned certificate where the token has a pin,
// and the system's roots otherwise.
func httpClient(t wire.Token) *http.Client {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.DisableCompression = true // blobs are hashed as stored; Range offsets count their bytes
	if len(t.Pin) != 0 {
		pin := [32]byte(t.Pin)
		tr.TLSClientConfig = &tls.Config{
			MinVersion: tls.VersionTLS13,
			// The pin replaces the chain: names and expiry say nothing about a
			// self-signed certificate whose hash is known.
			InsecureSkipVerify: true,
			VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
				if len(raw) == 0 || sha256.Sum256(raw[0]) != pin {
					return ErrPin
				}
				return nil
			},
		}
	}
	return &http.Client{Transport: tr}
}
