//go:build !js

package tokenizer

import "golang.org/x/text/unicode/norm"

// decomposed is valid UTF-8 in Unicode's normal form D.
func decomposed(text string) string { return norm.NFD.String(text) }
