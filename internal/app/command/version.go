package command

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionReport struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// newVersion is the command that prints a program's version.
func newVersion(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := versionReport{Version: a.Version, Commit: Commit(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
			return a.Emit(r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s %s (%s, %s/%s)\n", cmd.Root().Name(), r.Version, r.Go, r.OS, r.Arch)
				return err
			})
		},
	}
}

// unlinked is the version of a binary whose linker was told none.
const unlinked = "devel"

// VersionOf is the version that the linker was told; if it was told none ("devel"), the commit that the build
// says it was of, with -dirty where files had changed since, as make has it; else "devel".
func VersionOf(linked string) string {
	info, ok := debug.ReadBuildInfo()
	if linked != unlinked || !ok {
		return linked
	}
	return versionOf(info.Settings)
}

func versionOf(settings []debug.BuildSetting) string {
	commit, dirty := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if commit == "" {
		return unlinked
	}
	return commit[:min(8, len(commit))] + dirty
}

// Commit is the commit that this binary was built from; "" if unknown.
func Commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}
