package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/internal/app/command"
)

// Every command that help lists is in a group, and of a command with many flags every flag has a heading.
func TestHelpHasNoOtherCommands(t *testing.T) {
	root := command.Root(&command.App{}, newRootCmd)
	for _, c := range root.Commands() {
		if c.GroupID == "" && !c.Hidden && c.Name() != "version" {
			t.Errorf("%s is in no group", c.CommandPath())
		}
	}
	for _, name := range []string{"serve", "simulate"} {
		cmd, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		without := 0
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Annotations["starling_group"] == nil && f.Name != "help" {
				without++
				t.Errorf("%s --%s has no heading", name, f.Name)
			}
		})
	}
}

// What a shell offers for a flag is what the flag's help names.
func TestCompletionsAreInTheHelp(t *testing.T) {
	root := command.Root(&command.App{}, newRootCmd)
	offered := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			complete, there := c.GetFlagCompletionFunc(f.Name)
			if !there || f.Name == "preset" { // of a sweep, which --presets lists
				return
			}
			words, _ := complete(c, nil, "")
			for _, word := range words {
				offered++
				if !strings.Contains(f.Usage, word) && f.DefValue != word {
					t.Errorf("%s --%s: %q is offered, and its help says %q", c.CommandPath(), f.Name, word, f.Usage)
				}
			}
		})
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(root)
	if offered < 50 {
		t.Errorf("%d words are offered", offered)
	}
}
