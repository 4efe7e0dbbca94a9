package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
)

// A device's program has its owner's commands and no others, and says its own name where
// it shows how to call them.
func TestCommands(t *testing.T) {
	has := map[string]bool{}
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		has[c.CommandPath()] = true
		if strings.Contains(c.Example, "  starling ") {
			t.Errorf("%s: an example calls starling:\n%s", c.CommandPath(), c.Example)
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(command.Root(&command.App{}, newRootCmd))
	for _, want := range []string{"join", "bench", "account", "identity", "predict", "program verify", "version"} {
		if !has["starling-edge "+want] {
			t.Errorf("no command %s", want)
		}
	}
	for name := range has {
		if strings.Contains(name, "serve") || strings.Contains(name, "simulate") {
			t.Errorf("%s is not a device's", name)
		}
	}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"version"}, 0, "starling-edge devel ("},
		{[]string{"--version"}, 0, "starling-edge devel ("},
		{[]string{"jion", "--data", "x"}, 2, "did you mean join"},
		{[]string{"join"}, 2, "starling-edge: join takes a join token or URL, or up to 8 of them, got 0"},
		{[]string{"jion"}, 2, "did you mean join"},
		{[]string{"predict"}, 2, "--checkpoint is missing"},
		{[]string{"predict", "--engine", "xla"}, 2, "unknown flag: --engine"},
		{[]string{"serve"}, 2, "unknown command"},
	} {
		var out, said bytes.Buffer
		code := command.Run(t.Context(), newRootCmd, c.args, strings.NewReader(""), &out, &said)
		if text := out.String() + said.String(); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%v: exit %d, %q; want %d, %q", c.args, code, text, c.code, c.says)
		}
	}
}
