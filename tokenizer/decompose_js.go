//go:build js

package tokenizer

import "syscall/js"

// decomposed is valid UTF-8 in Unicode's normal form D. A browser has Unicode's tables,
// which would be a thirtieth of the program; what they assign they never change.
func decomposed(text string) string {
	return js.Global().Get("String").Get("prototype").Get("normalize").Call("call", text, "NFD").String()
}
