package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownCommand refuses a command that there is none of, with the nearest.
func unknownCommand(cmd *cobra.Command, name string) error {
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return Usagef("unknown command %q; did you mean %s?", name, strings.Join(near, " or "))
	}
	return Usagef("unknown command %q", name)
}

// flagError marks wrong flags as wrong usage; one that there is none of gets
// the nearest.
func flagError(cmd *cobra.Command, err error) error {
	unknown := new(pflag.NotExistError)
	if !errors.As(err, &unknown) {
		return UsageError{err}
	}
	name, best, least := unknown.GetSpecifiedName(), "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); !f.Hidden && (d < least || best == "" && len(name) > 2 && strings.HasPrefix(f.Name, name)) {
			best, least = f.Name, min(d, least)
		}
	})
	if best == "" {
		return UsageError{err}
	}
	return UsageError{fmt.Errorf("%w; did you mean --%s?", err, best)}
}

// distance is Levenshtein's: the fewest letters to put in, take out or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
