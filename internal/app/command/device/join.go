package device

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/idle"
	"github.com/starling-fl/starling/internal/app/participation"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
)

func newJoinCmd(a *command.App) *cobra.Command {
	j := joining{config: participation.Config{Streams: &a.Streams}}
	cmd := &cobra.Command{
		Use:   "join TOKEN|URL|@FILE|-... --data FILE",
		Short: "Take part in a job, or in several, as an edge; your data stays on this machine",
		Long: `Take part in a job as an edge. The argument is the join token that
'starling serve' prints, or the coordinator's plain http(s) URL where it asks
for no enrolment secret; @FILE and - read it from a file and standard input.
Training runs in a sandboxed program the coordinator
compiled; what leaves this machine is one clipped, quantized and masked update
a round. The command ends when the job does and reconnects until then. Given several
tokens it takes part in all of those jobs under one identity, trains for one at a time, and
ends with the last; what one of them asks for beyond your policy keeps it out of that one.

Your policy limits what the coordinator may ask for. Its defaults refuse what could
tell more of your data than a job needs: see examples/policy.yaml. If a job asks for more,
the command says for what. On a terminal it asks you, and joins only if you type yes. Your
consent is stored with the data, and holds for no more than the coordinator asked for.

With --fleet the token is a server's of several jobs. The command takes part, without asking,
in the jobs within your policy, also in those submitted later. Consent given to one job does
not hold for them, and --epsilon bounds what all of them may cost together.

Before it joins a job, the command tries for some twenty seconds how much one update would
show: see 'starling bench'. It does so once a job, on made-up examples, before it reads any
of your data for the job.

An address on this machine does not show who runs the coordinator: the port may be forwarded.
Give --trust-local if you run it yourself, to try a job with a handful of devices. The limits
are then those for your own machine, and the trial of an update is left out.`,
		Example: "  starling join starling2_... --data my.tsv\n  starling join http://127.0.0.1:8080 --trust-local --data my.jsonl.gz --identity phone.pem",
		Args:    tokenArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			tokens, err := j.settle(a.Stdin, args)
			if err != nil {
				return err
			}
			j.config.Version = a.Version
			return j.config.Run(cmd.Context(), tokens)
		},
	}
	j.add(cmd.Flags())
	command.Settings(cmd)
	return cmd
}

// tokenArgs wants the tokens of jobs.
func tokenArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) > participation.MostJoined {
		return usage.Errorf("join takes a join token or URL, or up to %d of them, got %d", participation.MostJoined, len(args))
	}
	return nil
}

// joining is how an owner takes part, as given on the command line.
type joining struct {
	config participation.Config
	policy policyFlags
	bases  command.KnownFlags
	flags  *pflag.FlagSet
}

func (j *joining) add(flags *pflag.FlagSet) {
	f := &j.config
	j.flags = flags
	flags.StringVar(&f.Data, "data", "", "labelled file to train on: "+dataset.Formats)
	command.ColumnFlags(flags, &f.Columns)
	flags.StringVar(&f.Identity, "identity", "", "identity file (default: one for each data file, in the user's configuration folder)")
	flags.StringVar(&f.Accounts, "accounts", "", "folder of what each data set has given (default starling/accounts in the user's configuration folder)")
	flags.StringVar(&f.Cache, "cache", "", "folder for the base and programs (default starling in the user's cache folder)")
	flags.IntVar(&f.Cores, "cores", 0, "most cores to train on; 0: half of this machine's")
	flags.BoolVar(&f.NotPrivate, "accept-not-private", false, "join a job that is not private: reproducible, with all secrets known to the coordinator, or without noise")
	flags.BoolVar(&f.Plain, "allow-plain-http", false, "join a coordinator on another machine over http, which nobody encrypts")
	flags.BoolVar(&f.TrustPrograms, "trust-programs", false, "run the coordinator's programs without making them again here")
	flags.BoolVar(&f.AskAgain, "ask-again", false, "forget what was accepted of this coordinator earlier, and ask")
	flags.StringVar(&f.Base, "base", "", "take the base from this folder, or of this name from the local Hugging Face cache, instead of from the coordinator (see 'starling base fetch')")
	flags.StringVar(&f.BaseFrom, "base-from", participation.FromCoordinator, "who sends the base: coordinator, hub (Hugging Face's, or HF_ENDPOINT) or a mirror's address; its hash is the job's in any case")
	j.bases.Add(flags)
	flags.BoolVar(&f.Fleet, "fleet", false, "take part in the jobs of a coordinator of several, those submitted later too, where they are within your policy; until it is interrupted")
	flags.StringSliceVar(&f.Tasks, "tasks", nil, "with --fleet: what may be learnt of the data (default: what a file of its kind is for)")
	flags.StringVar(&f.Pool, "pool", "fleet", "with --fleet: the pool whose jobs are taken")
	flags.DurationVar(&f.Look, "look", 5*time.Minute, "with --fleet: how often new jobs are looked for")
	j.policy.add(flags)
	flags.BoolVar(&f.When.Mains, "on-mains", false, "take part on mains power only: on battery this device finishes its round and rests")
	flags.BoolVar(&f.When.Unmetered, "unmetered", false, "take part only on networks that are not metered (asks NetworkManager; Linux)")
	flags.Var((*spans)(&f.When.Quiet), "quiet", "hours in which this device rests, local time, such as 09:00-17:30; may be repeated")
}

// settle checks the flags and reads the tokens; standard input is read last.
func (j *joining) settle(stdin io.Reader, args []string) (tokens []string, err error) {
	f, given := &j.config, j.flags.Changed
	if !f.Fleet && (given("tasks") || given("pool") || given("look")) {
		return nil, usage.Errorf("--tasks, --pool and --look are for --fleet")
	}
	if err := f.Check(len(args)); err != nil {
		return nil, err
	}
	tokens = slices.Clone(args)
	for i := range tokens {
		if tokens[i], err = readToken(stdin, tokens[i]); err != nil {
			return nil, err
		}
	}
	if f.Known, err = j.bases.List(); err != nil {
		return nil, err
	}
	f.TryLeak, f.Policy = given("leak"), j.policy.policy()
	return tokens, nil
}

// spans is a flag of times of day.
type spans []idle.Span

// Set adds one or more.
func (s *spans) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		span, err := idle.ParseSpan(part)
		if err != nil {
			return err //nolint:wrapcheck // pflag names the flag
		}
		*s = append(*s, span)
	}
	return nil
}

// Append, Replace and GetSlice make it a list, whose values can be kept in a file.
func (s *spans) Append(text string) error { return s.Set(text) }

// Replace sets all of them.
func (s *spans) Replace(texts []string) error {
	*s = nil
	return s.Set(strings.Join(texts, ","))
}

// GetSlice returns each as it is written.
func (s *spans) GetSlice() []string {
	var texts []string
	for _, span := range *s {
		texts = append(texts, span.String())
	}
	return texts
}

func (s *spans) Type() string { return "times" }

func (s *spans) String() string { return strings.Join(s.GetSlice(), ",") }

// mostToken bounds a file with a token, in bytes.
const mostToken = 4096

// readToken takes the token from where it is not seen in a list of processes: a
// file after @, or standard input for -.
func readToken(stdin io.Reader, where string) (string, error) {
	path, isFile := strings.CutPrefix(where, "@")
	if !isFile && where != "-" {
		return where, nil
	}
	var b []byte
	var err error
	if isFile {
		b, err = named.Read(path, mostToken)
	} else {
		b, err = io.ReadAll(io.LimitReader(stdin, mostToken))
	}
	if err != nil {
		return "", fmt.Errorf("join token: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
