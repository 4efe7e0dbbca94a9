//go:build linux

package main

import "testing"

// The heap is judged between times in which the devices do the same: those of a short
// run wait for a killed coordinator in its middle and work at its end. One that grows is
// found all the same.
func TestHeapIsComparedLikeWithLike(t *testing.T) {
	const devices = 40
	run := func(grows int, phases ...int) *memory {
		m := &memory{}
		for i, working := range phases {
			for j := range 15 {
				m.devices = 3000 + 50*working + grows*(15*i+j)
				m.note(working, devices)
			}
		}
		return m
	}
	for name, x := range map[string]struct {
		m    *memory
		fits bool
	}{
		"a short run with kills":      {run(0, 40, 10, 10, 39), true},
		"a longer one with two":       {run(0, 40, 10, 40, 10, 10, 40, 39, 38), true},
		"a longer one that grows":     {run(70, 40, 10, 40, 10, 40, 10, 40, 38), false},
		"nobody is there":             {run(0, 10, 10, 10, 10, 10), true},
		"all are there, and it grows": {run(70, 40, 40, 40, 40, 40), false},
	} {
		if err := x.m.check(); (err == nil) != x.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
