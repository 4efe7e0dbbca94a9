package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine describes this one: processor, how many, Go, and how busy it is, which
// is what a reader must know of a figure.
func machine() string {
	m := fmt.Sprintf("%d x %s, %s", runtime.NumCPU(), processor(), runtime.Version())
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 2 {
			m += fmt.Sprintf(", load %s and %s in the last 1 and 15 minutes", f[0], f[2])
		}
	}
	return m
}

// processor is its model's name, or the architecture where the system hides it.
func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	model, flags := runtime.GOARCH, ""
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name":
			model = strings.TrimSpace(value)
		case "flags":
			flags = value
		}
	}
	for _, f := range []string{"avx512f", "avx2"} {
		if strings.Contains(flags, " "+f+" ") {
			return model + " with " + f
		}
	}
	return model
}
