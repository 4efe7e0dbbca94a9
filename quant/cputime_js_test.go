//go:build js

package quant

import (
	"syscall/js"
	"time"
)

// cpuTime is the processor time that node has had.
func cpuTime() time.Duration {
	u := js.Global().Get("process").Call("cpuUsage")
	return time.Duration(u.Get("user").Int()+u.Get("system").Int()) * time.Microsecond
}
