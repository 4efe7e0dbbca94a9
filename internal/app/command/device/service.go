package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/internal/app/accounts"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/participation"
	"github.com/starling-fl/starling/internal/app/unattended"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// serviceReport is the state of a service.
type serviceReport struct {
	Name     string `json:"name"`
	State    string `json:"state"`    // running, stopped, not installed, or what the system says
	Settings string `json:"settings"` // file; "" where the service is not installed
	Log      string `json:"log"`      // how to read what it says
}

func newServiceCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Have this machine's system run join: at each login, with your limits",
		Long: `Have systemd, launchd or Windows run 'starling join' for you, at each login (on Windows at each start of the machine).
Nobody is there to be asked then: a job beyond your policy is left alone. Run 'starling join' once by
hand first if the job asks for your consent; what you accept there is remembered.`,
	}
	cmd.AddCommand(newServiceInstallCmd(a), newServiceRunCmd(a))
	for _, c := range []struct {
		use, short string
		act        func(*unattended.Service) error
	}{
		{"status", "Say whether the service runs, and where its settings and its log are", func(*unattended.Service) error { return nil }},
		{"start", "Start the service", (*unattended.Service).Start},
		{"stop", "Stop the service until the next login", (*unattended.Service).Stop},
		{"remove", "Stop the service and remove it with its settings and tokens; identity and account stay", (*unattended.Service).Remove},
	} {
		cmd.AddCommand(newServiceActCmd(a, c.use, c.short, c.act))
	}
	return cmd
}

// serviceFlags name a service.
func serviceFlags(flags *pflag.FlagSet, c *unattended.Config) {
	flags.StringVar(&c.Name, "name", "starling", "name of the service; a machine may have several")
	flags.StringVar(&c.Folder, "folder", "", "folder of its settings and tokens (default starling/service-NAME in the user's configuration folder)")
}

// openService is the service that the flags name.
func openService(c unattended.Config) (*unattended.Service, error) {
	if c.Name == "" || strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return nil, usage.Errorf("--name is %q, want a-z, 0-9 and -", c.Name)
	}
	var err error
	if c.Folder, err = accounts.UserPath(c.Folder, os.UserConfigDir, "service-"+c.Name); err != nil {
		return nil, err
	}
	if c.Folder, err = filepath.Abs(c.Folder); err != nil {
		return nil, fmt.Errorf("--folder: %w", err)
	}
	return unattended.New(c)
}

func newServiceInstallCmd(a *command.App) *cobra.Command {
	j := joining{config: participation.Config{Streams: &a.Streams}}
	var c unattended.Config
	cmd := &cobra.Command{
		Use:   "install TOKEN|URL|@FILE|-... --data FILE",
		Short: "Install and start the service, with the flags of join",
		Long: `Install and start the service. It takes the flags of 'starling join' and checks them: the data file is read, the policy
is parsed. They are kept in a file that 'join --config' reads, too, so that one file configures a fleet:
give it by --config. Tokens are kept apart, where only you may read them.`,
		Example: "  starling service install starling2_... --data my.tsv --on-mains --quiet 09:00-17:30\n" +
			"  starling service install @token --config fleet.yaml --data my.tsv",
		Args: tokenArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			tokens, err := j.settle(a.Stdin, args)
			if err != nil {
				return err
			}
			if j.config.AskAgain {
				return usage.Errorf("--ask-again: nobody is there to be asked; leave it out")
			}
			if err := j.config.Try(tokens); err != nil {
				return err
			}
			s, err := openService(c)
			if err != nil {
				return err
			}
			settings, err := settingsOf(j.flags)
			if err != nil {
				return err
			}
			if err := s.Install(settings, []byte(strings.Join(tokens, "\n")+"\n")); err != nil {
				return err
			}
			return report(a, s)
		},
	}
	j.add(cmd.Flags())
	command.Settings(cmd)
	serviceFlags(cmd.Flags(), &c)
	return cmd
}

// paths are flags of join that name a file or folder, which the service finds from wherever it is started.
var paths = []string{"data", "identity", "accounts", "cache", "policy", "base-list"}

// settled are paths with defaults of this user: the system may run the service with another home.
var settled = []string{"identity", "accounts", "cache"}

// settingsOf are the flags that were given, and settled paths, as a file of settings.
func settingsOf(flags *pflag.FlagSet) (lines []byte, err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed && !slices.Contains(settled, f.Name) || slices.Contains([]string{"config", "name", "folder"}, f.Name) {
			return
		}
		texts := []string{f.Value.String()}
		if list, is := f.Value.(pflag.SliceValue); is {
			texts = list.GetSlice()
		}
		for i, text := range texts {
			at, isFile := strings.CutPrefix(text, "@") // of --peers
			_, missing := os.Stat(text)
			if text != "" && (isFile || slices.Contains(paths, f.Name) || f.Name == "base" && missing == nil) {
				absolute, e := filepath.Abs(at)
				err = errors.Join(err, e)
				texts[i] = strings.TrimSuffix(text, at) + absolute
			}
		}
		b, e := json.Marshal(texts) // JSON is YAML
		err = errors.Join(err, e)
		lines = fmt.Appendf(lines, "%s: %s\n", f.Name, b)
	})
	return lines, err
}

func newServiceRunCmd(a *command.App) *cobra.Command {
	var c unattended.Config
	cmd := &cobra.Command{
		Use: "run", Short: "What the system runs", Hidden: true, Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Run = func(ctx context.Context, arguments []string) error {
				join := newJoinCmd(a)
				join.SilenceUsage, join.SilenceErrors = true, true
				join.SetArgs(arguments)
				join.SetIn(strings.NewReader(""))
				return join.ExecuteContext(ctx)
			}
			s, err := openService(c)
			if err != nil {
				return err
			}
			tokens, err := named.Read(s.Tokens(), mostToken*participation.MostJoined)
			if err != nil {
				return err
			}
			return s.Run(cmd.Context(), append([]string{"--config", s.Settings()}, strings.Fields(string(tokens))...))
		},
	}
	serviceFlags(cmd.Flags(), &c)
	return cmd
}

func newServiceActCmd(a *command.App, use, short string, act func(*unattended.Service) error) *cobra.Command {
	var c unattended.Config
	cmd := &cobra.Command{
		Use: use, Short: short, Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := openService(c)
			if err != nil {
				return err
			}
			if err := act(s); err != nil {
				return err
			}
			return report(a, s)
		},
	}
	serviceFlags(cmd.Flags(), &c)
	return cmd
}

// report prints the state of a service.
func report(a *command.App, s *unattended.Service) error {
	r := serviceReport{Name: s.Name, Settings: s.Settings()}
	r.State, r.Log = s.Status()
	if r.State == unattended.NotInstalled {
		r.Settings = ""
	}
	return a.Emit(r, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %s\n", r.Name, r.State)
		if err == nil && r.Settings != "" {
			_, err = fmt.Fprintf(w, "settings  %s\nlog       %s\n", r.Settings, r.Log)
		}
		return err
	})
}
