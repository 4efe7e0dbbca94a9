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

// Commit is what this binary was built of; "" if the build did not say.
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
