package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker (make build); a plain go build leaves "devel".
var version = "devel"

type versionReport struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			r := versionReport{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						r.Commit = s.Value
					}
				}
			}
			return a.emit(r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "starling %s (%s, %s/%s)\n", r.Version, r.Go, r.OS, r.Arch)
				return err
			})
		},
	}
}
