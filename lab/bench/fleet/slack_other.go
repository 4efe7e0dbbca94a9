//go:build unix && !linux

package main

import "time"

func slacken(time.Duration) {}
