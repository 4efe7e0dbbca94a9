//go:build js

package tokenizer

import "syscall/js"

// normalized is valid UTF-8 in one of Unicode's normal forms. A browser has Unicode's tables,
// which would be a thirtieth of the program; what they assign they never change.
func normalized(form, text string) string {
	return js.Global().Get("String").Get("prototype").Get("normalize").Call("call", text, form).String()
}
