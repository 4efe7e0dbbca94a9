//go:build !unix && !js

package secagg

import "time"

var processStart = time.Now()

// processTime is wall time where no better clock is to be had.
func processTime() time.Duration { return time.Since(processStart) }
