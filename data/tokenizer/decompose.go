//go:build !js

package tokenizer

import "golang.org/x/text/unicode/norm"

// normalized is valid UTF-8 in one of Unicode's normal forms.
func normalized(form, text string) string { return forms[form].String(text) }

var forms = map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}
