//go:build !js

package edge

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/wire"
)

// host names the code shape of programs that this build runs best.
const host = "wazero"

func dialOptions(t wire.Token, netDial NetDialer) *websocket.DialOptions {
	return &websocket.DialOptions{HTTPClient: NewHTTPClient(t, netDial), CompressionMode: websocket.CompressionDisabled}
}

// blobIdle is how long a connection waits for the next blob to be asked for.
const blobIdle = 3 * time.Second

// NewHTTPClient makes the client that blobs are fetched with by default. It
// trusts exactly the pinned certificate where the token has a pin, and the
// system's roots otherwise. netDial nil means the system's dialer.
func NewHTTPClient(t wire.Token, netDial NetDialer) *http.Client {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	if netDial != nil {
		tr.DialContext = netDial
	}
	// Blobs are fetched in bursts, a round's at once: between them a device holds one
	// connection, its session's, and not two.
	tr.IdleConnTimeout = blobIdle
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

// blobClient asks for blobs.
type blobClient struct{ http *http.Client }

// newBlobClient uses given where there is one. done ends what was started.
func newBlobClient(t wire.Token, given *http.Client) (c blobClient, done func()) {
	if given != nil {
		return blobClient{given}, func() {}
	}
	own := NewHTTPClient(t, nil)
	return blobClient{own}, own.CloseIdleConnections
}

// open asks for a blob from a byte on, if it still has the tag. The caller
// closes the body.
func (c blobClient) open(ctx context.Context, url string, from uint64, etag string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		req.Header.Set("If-Range", etag)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	return &answer{resp.StatusCode, resp.Header.Get("Content-Range"), resp.Body}, nil
}
