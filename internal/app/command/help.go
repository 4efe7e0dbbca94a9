package command

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// flagGroup is the annotation of flags that help lists under a heading of their own.
const flagGroup = "starling_group"

// Headings has a command's help list flags under headings: each is followed by the names of its flags. A name that no
// flag has is a mistake of the program, and panics.
func Headings(fl *pflag.FlagSet, headings ...[]string) {
	for i, h := range headings {
		for _, name := range h[1:] {
			if err := fl.SetAnnotation(name, flagGroup, []string{fmt.Sprintf("%02d%s", i, h[0])}); err != nil {
				panic(err)
			}
		}
	}
}

// setUsage has each command that no others are below show its flags under headings, in lines that fit the terminal.
func setUsage(cmd *cobra.Command) {
	if !cmd.HasSubCommands() {
		cmd.SetUsageFunc(func(cmd *cobra.Command) error {
			printUsage(cmd.OutOrStderr(), cmd)
			return nil
		})
	}
	for _, c := range cmd.Commands() {
		setUsage(c)
	}
}

func printUsage(w io.Writer, cmd *cobra.Command) {
	columns, _ := terminal.Width(w)
	fmt.Fprintf(w, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	const last = "99Flags"
	under := map[string]*pflag.FlagSet{}
	add := func(heading string, f *pflag.Flag) {
		if under[heading] == nil {
			under[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
		}
		under[heading].AddFlag(f)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if of := f.Annotations[flagGroup]; len(of) > 0 {
			add(of[0], f)
		} else {
			add(last, f)
		}
	})
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { add(last, f) })
	for _, heading := range slices.Sorted(maps.Keys(under)) {
		if usages := under[heading].FlagUsagesWrapped(columns); usages != "" {
			fmt.Fprintf(w, "\n%s:\n%s", heading[2:], usages)
		}
	}
}
