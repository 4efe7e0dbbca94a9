package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/model"
)

// values are what a shell offers for flags that take one of a few words, by the flag's name: those of them that the
// flag's help names. A command whose flag of that name takes others says so by Values.
var values = map[string][]string{
	"arithmetic":   {"fused", "exact"},
	"engine":       {"program", "xla"},
	"log":          {"text", "json"},
	"log-level":    {"debug", "info", "warn", "error"},
	"privacy-unit": {"device", "provider"},
	"rank":         {"best"},
	"scale":        {"rank", "constant"},
	"split":        {"train", "validation", "test"},
	"task":         model.TaskNames(),
}

// folders and jobFiles are flags whose values are folders and job files.
var (
	folders  = []string{"accounts", "checkpoint", "dir", "out", "shadows", "start"}
	jobFiles = []string{"config", "job"}
)

// Values has a shell offer words for a flag.
func Values(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // no flag has that name
	}
}

// complete gives the flags of a command and of those below it what a shell offers for them.
func complete(cmd *cobra.Command) {
	fl := cmd.Flags()
	is := func(f *pflag.Flag, kind string) bool { return f != nil && f.Value.Type() == kind }
	for name, words := range values {
		f := fl.Lookup(name)
		if !is(f, "string") {
			continue
		}
		words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.Contains(f.Usage, word) })
		if _, there := cmd.GetFlagCompletionFunc(name); !there && len(words) > 0 {
			Values(cmd, name, words...)
		}
	}
	for _, name := range folders {
		if is(fl.Lookup(name), "string") {
			_ = cmd.MarkFlagDirname(name) // the flag is there
		}
	}
	for _, name := range jobFiles {
		if is(fl.Lookup(name), "string") {
			_ = cmd.MarkFlagFilename(name, "yaml", "yml") // the flag is there
		}
	}
	for _, c := range cmd.Commands() {
		complete(c)
	}
}
