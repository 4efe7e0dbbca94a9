package command

import (
	"runtime/debug"
	"testing"
)

// A plain go build names its commit, as make's builds do.
func TestVersionOfABuild(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "983f6c4668d2efef5ebad8f66ec32fc9a7fd2b00"}
	for want, settings := range map[string][]debug.BuildSetting{
		"devel":          {{Key: "-trimpath", Value: "true"}},
		"983f6c46":       {commit, {Key: "vcs.modified", Value: "false"}},
		"983f6c46-dirty": {commit, {Key: "vcs.modified", Value: "true"}},
	} {
		if got := versionOf(settings); got != want {
			t.Errorf("%v: %q, want %q", settings, got, want)
		}
	}
	if got := VersionOf("v1.2"); got != "v1.2" {
		t.Errorf("a version that the linker was told is %q", got)
	}
}
