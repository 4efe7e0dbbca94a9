package participation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/accounts"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/idle"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/known"
	"github.com/starling-fl/starling/wasm/program"
)

// Config holds an owner's settings, the flags of 'starling join'.
type Config struct {
	Streams *terminal.Streams
	Version string // of this program
	Policy  Policy

	Data, Identity, Cache, Accounts string          // paths; all but Data have defaults
	Columns                         dataset.Columns // of Data
	Cores                           int             // 0: half of this machine's
	Base, BaseFrom                  string
	Known                           known.List

	NotPrivate, Plain, TrustPrograms, AskAgain bool
	TryLeak                                    bool // for the owner's own coordinator, too

	Fleet bool // the token is a server's of several jobs
	Tasks []string
	Pool  string
	Look  time.Duration

	When idle.Rule // when the device takes part
}

// Check checks the fields against each other, for so many tokens.
func (c *Config) Check(tokens int) error {
	switch {
	case c.Data == "":
		return usage.Errorf("--data is required: a labelled file: %s", dataset.Formats)
	case c.Cores < 0:
		return usage.Errorf("--cores is %d, want 1 or more, or 0 for half of this machine's", c.Cores)
	case !c.Fleet:
		return nil
	case tokens != 1:
		return usage.Errorf("--fleet takes one token: it finds the jobs itself")
	case c.AskAgain:
		return usage.Errorf("--fleet asks nothing: leave out --ask-again")
	case c.Look < time.Second || c.Look > 24*time.Hour:
		return usage.Errorf("--look is %v, want a second to a day", c.Look)
	}
	for _, name := range c.Tasks {
		if kind, err := model.ParseTask(name); err != nil || kind.String() != name {
			return usage.Errorf("--tasks: %q, want some of %q", name, model.TaskNames())
		}
	}
	return nil
}

// parts are the jobs of tokens, or of addresses.
func (c *Config) parts(tokens []string) ([]*Part, error) {
	var out []*Part
	for i, where := range tokens {
		token, err := edge.JoinToken(where)
		if err != nil {
			return nil, usage.Wrap(err)
		}
		for _, other := range out {
			if other.Token == token {
				return nil, usage.Errorf("one of the tokens is given twice")
			}
		}
		p := &Part{Token: token}
		if p.Policy, p.Note, err = c.Policy.Toward(token); err != nil {
			return nil, err
		}
		if len(tokens) > 1 {
			p.Prefix = fmt.Sprintf("job %d: ", i+1)
		}
		out = append(out, p)
	}
	if c.Fleet && out[0].Policy.Epsilon == 0 {
		return nil, usage.Errorf("--fleet needs --epsilon, or epsilon in your policy file: the most that all jobs together, future ones included, may cost the data")
	}
	return out, nil
}

// Try checks all that can be checked without a coordinator: flags, tokens, policy and data. It fills in paths that were
// not given.
func (c *Config) Try(tokens []string) error {
	if _, err := c.begin(tokens); err != nil {
		return err
	}
	if _, err := c.Columns.Load(c.Data); err != nil {
		return err
	}
	kept, err := accounts.Open(c.Accounts)
	if err != nil {
		return err
	}
	c.Accounts = kept.Dir()
	return c.settle()
}

// begin checks what was given, and returns the jobs.
func (c *Config) begin(tokens []string) ([]*Part, error) {
	if err := c.Check(len(tokens)); err != nil {
		return nil, err
	}
	if _, err := c.When.Rests(time.Now()); err != nil {
		return nil, err
	}
	return c.parts(tokens)
}

// settle fills in the paths of identity and cache that were not given: they are of this user.
func (c *Config) settle() (err error) {
	if c.Identity == "" {
		if c.Identity, err = accounts.IdentityPath(c.Data); err != nil {
			return err
		}
	}
	c.Cache, err = accounts.UserPath(c.Cache, os.UserCacheDir, "")
	return err
}

// Run takes part in the jobs of tokens until they end, and reports the contributions to each.
func (c *Config) Run(ctx context.Context, tokens []string) (err error) {
	parts, err := c.begin(tokens)
	if err != nil {
		return err
	}
	told := c.Streams.Stderr
	m := &Participant{
		Streams: c.Streams, Agent: agent(c.Version), Cores: c.Cores, Remake: program.Remake, Known: c.Known,
		AskAgain: c.AskAgain, TrustLocal: c.Policy.TrustLocal, TryLeak: c.TryLeak, Plain: c.Plain, NotPrivate: c.NotPrivate,
	}
	if c.Cores == 0 {
		m.Cores = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if c.TrustPrograms {
		m.Remake = nil
	}
	if m.Fetch, err = baseFrom(c.BaseFrom, told); err != nil {
		return err
	}
	if c.Base != "" {
		if m.Base, _, err = bases.OpenNamed(c.Base); err != nil {
			return err
		}
	}
	// Read once before the network, so that a bad line is told at once.
	if m.Set, err = c.Columns.Load(c.Data); err != nil {
		return err
	}
	if err := c.settle(); err != nil {
		return err
	}
	m.Identity, m.Cache = c.Identity, c.Cache
	var release func() error
	if m.Key, release, err = accounts.TakeIdentity(m.Identity); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if m.Kept, err = accounts.Open(c.Accounts); err != nil {
		return err
	}
	var releaseAccount func() error
	if m.Account, releaseAccount, err = m.Kept.Take(m.Set, c.Data, m.Identity); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, releaseAccount()) }()
	if err := accounts.Print(told, m.Account); err != nil {
		return err
	}
	if err := yieldToOthers(); err != nil {
		fmt.Fprintf(told, "training competes with this machine's other work: %v\n", err)
	}
	trainer := edge.NewProgramTrainer(1) // one round at a time, of whichever job
	trainer.Cores, m.Trainer = m.Cores, trainer
	defer func() { err = errors.Join(err, trainer.Close()) }()
	fmt.Fprintf(told, "%d examples of %d labels in %s; identity %s, %x\n", len(m.Set.Examples), len(m.Set.Labels), c.Data, m.Identity, m.Key.Public())
	if m.Set.Left != "" {
		fmt.Fprintf(told, "left out of %s, being no examples: %s\n", c.Data, m.Set.Left)
	}
	var errs []error
	join := ruled(c.When, told, m.Join)
	if c.Fleet {
		found := &edge.Discovery{Tasks: c.Tasks} // what jobs may learn of the file
		if len(found.Tasks) == 0 {
			found.Tasks = []string{task.For(m.Set.Form()).String()}
		}
		fleet := &Follower{Fleet: parts[0], Found: found, Pool: c.Pool, Look: c.Look, Plain: c.Plain, Stderr: told, Join: join}
		parts, errs = fleet.Follow(ctx)
	} else {
		errs = JoinAll(ctx, parts, join)
	}
	spent, err := m.Account.Spent()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, p := range parts {
		p.Report.Spent = spent
	}
	return Emit(c.Streams, parts, errs)
}
