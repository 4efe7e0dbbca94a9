package command

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/strict"
)

// Settings lets a service's flags come from its surroundings, too: what the command line
// does not give is taken from the variable STARLING_COMMAND_FLAG (STARLING_SERVE_DIR,
// dashes as underscores), and then from the YAML file of --config, whose keys are flags.
// A variable or key of the command that is not a flag of it is an error: it is a typing
// mistake, and would be a setting that does not hold.
func Settings(cmd *cobra.Command) {
	file := cmd.Flags().String("config", "", fmt.Sprintf("YAML file of this command's flags, one a line (dir: run1). Precedence: flag, variable %sFLAG, file", prefix(cmd)))
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := fromEnvironment(cmd, os.Environ()); err != nil {
			return err
		}
		if *file != "" {
			if err := fromFile(cmd, *file); err != nil {
				return err
			}
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

func prefix(cmd *cobra.Command) string {
	return "STARLING_" + strings.ToUpper(strings.ReplaceAll(cmd.Name(), "-", "_")) + "_"
}

// fromEnvironment sets the flags that variables name and the command line does not.
func fromEnvironment(cmd *cobra.Command, environ []string) error {
	for _, line := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(line, "=")
		key, ours := strings.CutPrefix(name, prefix(cmd))
		if !ours {
			continue
		}
		flag, err := setting(cmd, strings.ToLower(strings.ReplaceAll(key, "_", "-")))
		if err != nil {
			return usage.Errorf("the variable %s: %v", name, err)
		}
		if flag.Changed {
			continue
		}
		if err := cmd.Flags().Set(flag.Name, value); err != nil {
			return usage.Errorf("the variable %s: %v", name, err)
		}
	}
	return nil
}

// fromFile sets the flags that a file names and nothing before it does.
func fromFile(cmd *cobra.Command, path string) error {
	f, err := named.Once(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	defer f.Close()
	values := map[string]strict.Words{}
	if err := strict.Read(f, &values); err != nil {
		return usage.Errorf("--config %s: %s", path, strict.Explain(err, true))
	}
	given := map[string]bool{}
	for name := range values {
		flag, err := setting(cmd, name)
		if err != nil {
			return usage.Errorf("--config %s: %v", path, err)
		}
		given[name] = flag.Changed
	}
	for name, words := range values {
		if given[name] {
			continue
		}
		for _, word := range words {
			if err := cmd.Flags().Set(name, word); err != nil {
				return usage.Errorf("--config %s: %s: %v", path, name, err)
			}
		}
	}
	return nil
}

// setting is the flag of that name, which surroundings may set.
func setting(cmd *cobra.Command, name string) (*pflag.Flag, error) {
	flag := cmd.Flags().Lookup(name)
	if flag == nil || name == "config" || name == "help" {
		return nil, fmt.Errorf("%s has no flag --%s that can be set so: see '%s --help'", cmd.CommandPath(), name, cmd.CommandPath())
	}
	return flag, nil
}
