package command

import (
	"fmt"
	"strings"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/wire"
)

// JoinToken returns the join token that where is, which may be a token, or a bare URL as a token without pin and secret.
func JoinToken(where string) (string, error) {
	if strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://") {
		return edge.AddressToken(strings.TrimRight(where, "/"))
	}
	t, err := wire.ParseToken(where)
	if err != nil {
		return "", fmt.Errorf("%w; want the token that 'starling serve' prints, or an http(s) URL", err)
	}
	return t.String(), nil
}
