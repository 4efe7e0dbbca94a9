package attack

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// A Token is a join token's content (section 6).
type Token struct {
	URL                          string
	Pin, Secret, Task, Authority []byte
}

const tokenPrefix = "starling2_"

// ParseToken reads a join token.
func ParseToken(s string) (t Token, err error) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(s, tokenPrefix))
	if err != nil {
		return t, fmt.Errorf("attack: join token: %w", err)
	}
	a, err := DecodeArray(b, 5)
	if err != nil {
		return t, err
	}
	t.URL, _ = a[0].(string)
	for i, to := range []*[]byte{&t.Pin, &t.Secret, &t.Task, &t.Authority} {
		*to, _ = a[i+1].([]byte)
	}
	return t, nil
}

// String writes the token.
func (t Token) String() string {
	a := Array{t.URL}
	for _, b := range [][]byte{t.Pin, t.Secret, t.Task, t.Authority} {
		if b == nil {
			a = append(a, nil)
		} else {
			a = append(a, b)
		}
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(Encode(a))
}
