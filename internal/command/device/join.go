package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/accounts"
	"github.com/starling-fl/starling/internal/bases"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/named"
	"github.com/starling-fl/starling/internal/participation"
	"github.com/starling-fl/starling/internal/usage"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/program"
)

// joinFlags are the command's.
type joinFlags struct {
	data, identity, cache string
	accounts              string
	notPrivate, plain     bool
	trustPrograms         bool
	askAgain              bool
	base, baseFrom        string
	known                 command.KnownFlags
	cores                 int
	columns               dataset.Columns
	policy                policyFlags
	fleet                 bool
	tasks                 []string
	pool                  string
	look                  time.Duration
}

func newJoinCmd(a *command.App) *cobra.Command {
	var f joinFlags
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

What the coordinator may ask for is limited by a policy of yours, whose
defaults refuse what could tell more of your data than a job needs: see
examples/policy.yaml. Of a job outside of it you are told why, and asked where this
is a terminal; it is not joined unless you type yes. What you accept of a coordinator
is remembered with the data, for no more than it asked for.

With --fleet the token is a server's of several jobs, and the command takes part in those that
are within your policy, one submitted later among them, without asking: what you accepted of one
job earlier holds for none that is found so, and --epsilon bounds what all of them may cost.

Of a coordinator elsewhere it is tried, once a job and for some twenty seconds, what one
update would show: see 'starling bench'. It is done on made-up examples, before anything
of yours is read for the job.`,
		Example: "  starling join starling2_... --data my.tsv\n  starling join http://127.0.0.1:8080 --data my.jsonl.gz --identity phone.pem",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > participation.MostJoined {
				return usage.Errorf("join takes a join token or URL, or up to %d of them, got %d", participation.MostJoined, len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.data == "" {
				return usage.Errorf("--data is required: a labelled file: %s", command.LabelledFormats)
			}
			if f.cores < 0 {
				return usage.Errorf("--cores is %d, want 1 or more, or 0 for half of this machine's", f.cores)
			}
			if err := f.checkFleet(args); err != nil {
				return err
			}
			if f.cores == 0 {
				f.cores = max(1, runtime.GOMAXPROCS(0)/2)
			}
			return runJoin(cmd.Context(), a, args, f)
		},
	}
	cmd.Flags().StringVar(&f.data, "data", "", "labelled file to train on: "+command.LabelledFormats)
	command.ColumnFlags(cmd.Flags(), &f.columns)
	cmd.Flags().StringVar(&f.identity, "identity", "", "identity file (default: one for each data file, in the user's configuration folder)")
	cmd.Flags().StringVar(&f.accounts, "accounts", "", "folder of what each data set has given (default starling/accounts in the user's configuration folder)")
	cmd.Flags().StringVar(&f.cache, "cache", "", "folder for the base and programs (default starling in the user's cache folder)")
	cmd.Flags().IntVar(&f.cores, "cores", 0, "most cores to train on; 0: half of this machine's")
	cmd.Flags().BoolVar(&f.notPrivate, "accept-not-private", false, "join a job that is not private: reproducible, with all secrets known to the coordinator, or without noise")
	cmd.Flags().BoolVar(&f.plain, "allow-plain-http", false, "join a coordinator on another machine over http, which nobody encrypts")
	cmd.Flags().BoolVar(&f.trustPrograms, "trust-programs", false, "run the coordinator's programs without making them again here")
	cmd.Flags().BoolVar(&f.askAgain, "ask-again", false, "forget what was accepted of this coordinator earlier, and ask")
	cmd.Flags().StringVar(&f.base, "base", "", "take the base from this folder, or of this name from the local Hugging Face cache, instead of from the coordinator (see 'starling base fetch')")
	cmd.Flags().StringVar(&f.baseFrom, "base-from", fromCoordinator, "who sends the base: coordinator, hub (Hugging Face's, or HF_ENDPOINT) or a mirror's address; its hash is the job's in any case")
	f.known.Add(cmd.Flags())
	cmd.Flags().BoolVar(&f.fleet, "fleet", false, "take part in the jobs of a coordinator of several, those submitted later too, where they are within your policy; until it is interrupted")
	cmd.Flags().StringSliceVar(&f.tasks, "tasks", nil, "with --fleet: what may be learnt of the data (default: what a file of its kind is for)")
	cmd.Flags().StringVar(&f.pool, "pool", "fleet", "with --fleet: the pool whose jobs are taken")
	cmd.Flags().DurationVar(&f.look, "look", 5*time.Minute, "with --fleet: how often new jobs are looked for")
	f.policy.add(cmd.Flags())
	command.Settings(cmd)
	return cmd
}

// parts reads the tokens that a command is given.
func (f joinFlags) parts(a *command.App, wheres []string) ([]*participation.Part, error) {
	var out []*participation.Part
	for i, where := range wheres {
		where, err := readToken(a.Stdin, where)
		if err != nil {
			return nil, err
		}
		p := &participation.Part{}
		if p.Token, err = edge.JoinToken(where); err != nil {
			return nil, usage.Wrap(err)
		}
		for _, other := range out {
			if other.Token == p.Token {
				return nil, usage.Errorf("one of the tokens is given twice")
			}
		}
		if p.Policy, p.Note, err = f.policy.resolve(p.Token); err != nil {
			return nil, err
		}
		if len(wheres) > 1 {
			p.Prefix = fmt.Sprintf("job %d: ", i+1)
		}
		out = append(out, p)
	}
	return out, nil
}

func runJoin(ctx context.Context, a *command.App, wheres []string, f joinFlags) (err error) {
	parts, err := f.parts(a, wheres)
	if err != nil {
		return err
	}
	if f.fleet && parts[0].Policy.Epsilon == 0 {
		return usage.Errorf("--fleet needs --epsilon, or epsilon in your policy file: the most that all jobs together may cost the data, those that nobody has thought of yet among them")
	}
	listed, err := f.known.List()
	if err != nil {
		return err
	}
	fetch, err := baseFrom(f.baseFrom, a.Stderr)
	if err != nil {
		return err
	}
	var own *model.Base
	if f.base != "" {
		if own, _, err = bases.OpenNamed(f.base); err != nil {
			return err
		}
	}
	// Read once before the network, so that a bad line is told at once.
	set, err := f.columns.Load(f.data)
	if err != nil {
		return err
	}
	identity := f.identity
	if identity == "" {
		if identity, err = accounts.IdentityPath(f.data); err != nil {
			return err
		}
	}
	cache, err := accounts.UserPath(f.cache, os.UserCacheDir, "")
	if err != nil {
		return err
	}
	key, release, err := accounts.TakeIdentity(identity)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	kept, err := accounts.Open(f.accounts)
	if err != nil {
		return err
	}
	account, releaseAccount, err := kept.Take(set, f.data, identity)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, releaseAccount()) }()
	if err := accounts.Print(a.Stderr, account); err != nil {
		return err
	}
	if err := yieldToOthers(); err != nil {
		fmt.Fprintf(a.Stderr, "training competes with this machine's other work: %v\n", err)
	}
	trainer := edge.NewProgramTrainer(1) // one round at a time, of whichever job
	trainer.Cores = f.cores
	defer func() { err = errors.Join(err, trainer.Close()) }()
	fmt.Fprintf(a.Stderr, "%d examples of %d labels in %s; identity %s, %x\n", len(set.Examples), len(set.Labels), f.data, identity, key.Public())
	remake := edge.Remaker(program.Remake)
	if f.trustPrograms {
		remake = nil
	}
	owner := &participation.Participant{
		Streams: &a.Streams, Agent: agent(a.Version), Set: set, Kept: kept, Account: account, Identity: identity, Key: key, Cache: cache,
		Trainer: trainer, Cores: f.cores, Remake: remake, Known: listed, Base: own, Fetch: fetch,
		AskAgain: f.askAgain, TryLeak: f.policy.flags.Changed("leak"), Plain: f.plain, NotPrivate: f.notPrivate,
	}
	var errs []error
	if f.fleet {
		fleet := &participation.Follower{Fleet: parts[0], Found: f.foundFor(set), Pool: f.pool, Look: f.look, Plain: f.plain, Stderr: a.Stderr, Join: owner.Join}
		parts, errs = fleet.Follow(ctx)
	} else {
		errs = participation.JoinAll(ctx, parts, owner.Join)
	}
	spent, err := account.Spent()
	for _, p := range parts {
		p.Report.Spent = spent
	}
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	return participation.Emit(&a.Streams, parts, errs)
}

// readToken takes the token from where it is not seen in a list of processes: a
// file after @, or standard input for -.
func readToken(stdin io.Reader, where string) (string, error) {
	const most = 4096
	from := stdin
	if path, ok := strings.CutPrefix(where, "@"); ok {
		f, err := named.Once(path)
		if err != nil {
			return "", fmt.Errorf("join token: %w", err)
		}
		defer f.Close()
		from = f
	} else if where != "-" {
		return where, nil
	}
	b, err := io.ReadAll(io.LimitReader(from, most))
	if err != nil {
		return "", fmt.Errorf("join token: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
