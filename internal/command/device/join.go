package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/accounts"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/named"
	"github.com/starling-fl/starling/internal/terminal"
	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/program"
)

// JoinReport is what a device has given to a job.
type JoinReport struct {
	RoundsCommitted int    `json:"rounds_committed"`
	RoundsDropped   int    `json:"rounds_dropped"`
	RoundsAbandoned int    `json:"rounds_abandoned"`
	Sent            int64  `json:"bytes_sent"`
	Received        int64  `json:"bytes_received"`
	Examples        int    `json:"examples"`
	Interrupted     bool   `json:"interrupted,omitempty"` // by a signal, before the job ended
	Reason          string `json:"reason"`                // why it ended

	Spent edge.Spent `json:"spent"` // what all jobs so far have cost the data, as seen from here
}

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
			if len(args) == 0 || len(args) > mostJoined {
				return command.Usagef("join takes a join token or URL, or up to %d of them, got %d", mostJoined, len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.data == "" {
				return command.Usagef("--data is required: a labelled file: %s", command.LabelledFormats)
			}
			if f.cores < 0 {
				return command.Usagef("--cores is %d, want 1 or more, or 0 for half of this machine's", f.cores)
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

// mostJoined bounds the jobs that one command takes part in: each holds its base.
const mostJoined = 8

// part is a device's part in one job.
type part struct {
	token  string
	policy *edge.Policy
	note   string
	prefix string // of its lines, where there are several
	found  *edge.Discovery
	report JoinReport
}

// parts reads the tokens that a command is given.
func (f joinFlags) parts(a *command.App, wheres []string) ([]*part, error) {
	var out []*part
	for i, where := range wheres {
		where, err := readToken(a.Stdin, where)
		if err != nil {
			return nil, err
		}
		p := &part{}
		if p.token, err = joinToken(where); err != nil {
			return nil, command.Usage(err)
		}
		for _, other := range out {
			if other.token == p.token {
				return nil, command.Usagef("one of the tokens is given twice")
			}
		}
		if p.policy, p.note, err = f.policy.resolve(p.token); err != nil {
			return nil, err
		}
		if len(wheres) > 1 {
			p.prefix = fmt.Sprintf("job %d: ", i+1)
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
	if f.fleet && parts[0].policy.Epsilon == 0 {
		return command.Usagef("--fleet needs --epsilon, or epsilon in your policy file: the most that all jobs together may cost the data, those that nobody has thought of yet among them")
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
		if own, _, err = command.OpenNamed(f.base); err != nil {
			return err
		}
	}
	// Read once before the network, so that a bad line is told at once.
	set, err := command.LoadLabelled(f.data, f.columns)
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
	var asking sync.Mutex
	joinOne := func(ctx context.Context, p *part) error {
		p.report.Examples = len(set.Examples)
		stderr := command.Prefixed(a.Stderr, p.prefix)
		if p.note != "" {
			fmt.Fprintln(stderr, "note: "+p.note)
		}
		if f.askAgain {
			if err := account.Withdraw(p.token); err != nil {
				return err
			}
		}
		if p.found == nil {
			printConsents(stderr, account.Consents(p.token))
		}
		var events *json.Encoder
		if a.JSON && p.prefix == "" { // events of several jobs could not be told apart
			events = json.NewEncoder(a.Stdout)
		}
		shown := newView(stderr, events, func() uint64 { return promised(account) })
		through := *a
		through.Stderr = shown
		var leaks edge.Leaker
		if _, local := edge.PolicyFor(p.token); !local || f.policy.flags.Changed("leak") {
			leaks = leaker(&through, f.cores)
		}
		if _, local := edge.PolicyFor(p.token); !local {
			printQuote(ctx, stderr, edge.Config{Token: p.token, Policy: p.policy, AllowPlain: f.plain}, f.cores, len(set.Examples))
		}
		run := edge.Run
		if p.found == nil { // else nobody was asked for this job, and nobody is there to be
			run = (&consent{app: a, settle: shown.Clear, account: account, token: p.token, policy: p.policy, asking: &asking}).run
		}
		err := run(ctx, edge.Config{
			Found: p.found, Remake: remake, Leaks: leaks, Account: account, AllowPlain: f.plain,
			Agent: agent(a.Version), Token: p.token, Identity: key, Data: edge.Examples(set), CacheDir: cache, AcceptNotPrivate: f.notPrivate, Policy: p.policy,
			Trainer: trainer, Known: listed, Base: own, Fetch: fetch,
			Roster: func(round uint64, task [32]byte, proof *edge.RosterProof) {
				if err := kept.KeepRoster(round, task, proof); err != nil {
					fmt.Fprintln(shown, "note: who was in the shard could not be kept:", edge.Escape(err.Error(), false))
				}
			},
			Progress: func(e edge.Event) {
				p.report.count(e)
				shown.Show(e)
			},
		})
		shown.Clear()
		return p.report.ended(ctx, err, identity)
	}
	var errs []error
	if f.fleet {
		fleet := &follower{flags: f, fleet: parts[0], stderr: a.Stderr, join: joinOne, found: f.foundFor(set)}
		parts, errs = fleet.follow(ctx)
	} else {
		errs = joinAll(ctx, parts, joinOne)
	}
	spent, err := account.Spent()
	for _, p := range parts {
		p.report.Spent = spent
	}
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	return emitParts(a, parts, errs)
}

// joinAll takes part in all of the jobs until the last has ended.
func joinAll(ctx context.Context, parts []*part, join func(context.Context, *part) error) []error {
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { errs[i] = join(ctx, p) })
	}
	wg.Wait()
	return errs
}

// count follows a device's events in one job.
func (r *JoinReport) count(e edge.Event) {
	r.Sent, r.Received = e.Up, e.Down
	switch e.State {
	case edge.Committed:
		r.RoundsCommitted++
	case edge.Dropped:
		r.RoundsDropped++
	case edge.Abandoned:
		r.RoundsAbandoned++
	case edge.Finished:
		r.Reason = e.Text
	}
}

// ended says how a part ended.
func (r *JoinReport) ended(ctx context.Context, err error, identity string) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("interrupted after %d rounds; the same command takes part again", r.RoundsCommitted)
		r.Interrupted = true
	case errors.Is(err, edge.ErrDuplicate):
		err = fmt.Errorf("%w, on another machine or by another program: %s; give this one its own: --identity FILE", err, identity)
	}
	r.Reason = edge.Explain(err)
	return uninvited(err)
}

// emitParts reports what was given: of one job as it is, of several one after another.
func emitParts(a *command.App, parts []*part, errs []error) error {
	if len(parts) > 1 {
		for i, p := range parts {
			if errs[i] != nil {
				errs[i] = fmt.Errorf("job %d: %w", i+1, errs[i])
			}
			if p.found == nil { // else it was said
				fmt.Fprintf(a.Stderr, "%sended: %s\n", p.prefix, edge.Escape(p.report.Reason, false))
			}
		}
	}
	err := errors.Join(errs...)
	for i, p := range parts {
		if errs[i] != nil && !a.JSON { // with --json what was given is given, however it ended
			if p.report.Interrupted {
				fmt.Fprintf(a.Stderr, "%s%s. What was sent stays in the sums that it is part of\n", p.prefix, p.report.given())
			}
			continue
		}
		if e := a.Emit(p.report, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s%s; the job ended: %s\n", p.prefix, p.report.given(), p.report.Reason)
			return err
		}); e != nil {
			return errors.Join(err, e)
		}
	}
	return err
}

// tried is how long a round is tried before joining, beside what is fetched for it.
const tried = time.Second

// printQuote says what a round takes here, by a trial on made-up examples; nothing where that
// cannot be tried.
func printQuote(ctx context.Context, w io.Writer, cfg edge.Config, cores, examples int) {
	q, err := edge.AskQuote(ctx, cfg, cores, tried)
	if err != nil {
		return // of what is wrong with the coordinator joining says more
	}
	fmt.Fprintf(w, "a round takes about %s of computing here, %s down, %s up and %s of memory; the base is %s, once (tried on made-up examples)\n",
		spoken(time.Duration(q.Work(examples)*float64(time.Second))), terminal.Bytes(int64(q.Round.Down)), terminal.Bytes(int64(q.Round.Up)),
		terminal.Bytes(q.Memory), terminal.Bytes(int64(q.Base)))
}

// given is what the device has done, in words.
func (r *JoinReport) given() string {
	return fmt.Sprintf("took part in %d rounds (%d dropped, %d abandoned), sent %s, received %s",
		r.RoundsCommitted, r.RoundsDropped, r.RoundsAbandoned, terminal.Bytes(r.Sent), terminal.Bytes(r.Received))
}

// promised is how many rounds the job has that the data gave to last.
func promised(account *edge.Account) uint64 {
	if jobs := accounts.SortedJobs(account); len(jobs) > 0 {
		return jobs[0].Promised
	}
	return 0
}

// uninvited says whom to ask, of an invitation that does not open the job.
func uninvited(err error) error {
	refused := new(edge.RefusedError)
	if errors.As(err, &refused) && refused.Uninvited() {
		return fmt.Errorf("your invitation was used, has ended, was taken back, or its token is not whole: ask whoever sent it for a new one (%w)", err)
	}
	return err
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

// joinToken accepts a token, or a bare URL as a token without pin and secret.
func joinToken(where string) (string, error) {
	if strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://") {
		return edge.AddressToken(strings.TrimRight(where, "/"))
	}
	t, err := wire.ParseToken(where)
	if err != nil {
		return "", fmt.Errorf("%w; want the token that 'starling serve' prints, or an http(s) URL", err)
	}
	return t.String(), nil
}
