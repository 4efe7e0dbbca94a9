//go:build !unix && !js

package quant

import "time"

var processStart = time.Now()

// cpuTime is wall time where no better clock is to be had.
func cpuTime() time.Duration { return time.Since(processStart) }
