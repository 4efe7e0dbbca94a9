package nearest

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	names := []string{"memory", "micro_batch", "batch", "steps", "x"}
	for typed, want := range map[string]string{
		"memry": "memory", "memroy": "memory", "mem": "memory", "stepz": "steps", "batch": "batch",
		"y": "", "zz": "", "optimizer": "", "": "", strings.Repeat("m", 1<<20): "",
	} {
		if got := Of(typed, names); got != want {
			t.Errorf("%.20q: %q, want %q", typed, got, want)
		}
	}
	if q := Question("memry", "--", names); q != "; did you mean --memory?" {
		t.Error(q)
	}
}
