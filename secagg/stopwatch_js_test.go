//go:build js

package secagg

import (
	"syscall/js"
	"time"
)

// processTime is the processor time that node has had.
func processTime() time.Duration {
	u := js.Global().Get("process").Call("cpuUsage")
	return time.Duration(u.Get("user").Int()+u.Get("system").Int()) * time.Microsecond
}
