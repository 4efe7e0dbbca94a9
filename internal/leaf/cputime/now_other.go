//go:build !unix && !js

package cputime

import "time"

var started = time.Now()

// Now is wall time where no better clock is to be had.
func Now() time.Duration { return time.Since(started) }
