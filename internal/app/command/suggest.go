package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/nearest"
)

// unknownCommand refuses a command that there is none of, with the nearest.
func unknownCommand(cmd *cobra.Command, name string) error {
	of := ""
	if cmd.HasParent() {
		of = " of " + cmd.CommandPath()
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return usage.Errorf("unknown command %q%s; did you mean %s?", name, of, strings.Join(near, " or "))
	}
	return usage.Errorf("unknown command %q%s", name, of)
}

// flagError marks wrong flags as wrong usage; one that there is none of gets
// the nearest. Where the word before it is no command either, that is the mistake.
func flagError(cmd *cobra.Command, err error) error {
	unknown := new(pflag.NotExistError)
	if !errors.As(err, &unknown) {
		return usage.Wrap(plainValue(err))
	}
	if words := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(words) > 0 {
		return unknownCommand(cmd, words[0])
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return usage.Wrap(fmt.Errorf("%w%s", err, nearest.Question(unknown.GetSpecifiedName(), "--", names)))
}

// kinds are what a flag's value must be, by the flag's type.
var kinds = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint": "a whole number from 0 on", "uint64": "a whole number from 0 on",
	"float64": "a number", "bool": "true or false", "duration": "a duration, as 90s or 24h",
}

// plainValue says of a value that its flag does not take which values it does; the cause is of Go's
// parsers, for programmers.
func plainValue(err error) error {
	invalid := new(pflag.InvalidValueError)
	if !errors.As(err, &invalid) {
		return err
	}
	f := invalid.GetFlag()
	want, known := kinds[f.Value.Type()]
	if !known {
		return err
	}
	if errors.Is(err, strconv.ErrRange) {
		want += " within its limits"
	}
	return fmt.Errorf("--%s %q: want %s", f.Name, invalid.GetValue(), want)
}
