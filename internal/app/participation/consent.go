package participation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// consent asks a device's owner, where there is one at a terminal, about what a job asks
// for beyond the policy. Nobody there is a no.
type consent struct {
	to      *terminal.Streams
	account *edge.Account
	token   string
	policy  *edge.Policy // the owner's own
	settle  func()       // takes away what is on the terminal's last line
	asking  *sync.Mutex  // one question at a time: several jobs may have some
}

// run takes part, and again with what was accepted, until the job ends or the owner does
// not want it.
func (c *consent) run(ctx context.Context, cfg edge.Config) error {
	interactive := terminal.Is(c.to.Stdin) && terminal.Is(c.to.Stderr) // else the question is not seen
	tell := cfg.Progress
	for {
		var mu sync.Mutex
		var limits []edge.PolicyError // of a round, by mu
		running, stop := context.WithCancel(ctx)
		cfg.Progress = func(e edge.Event) {
			tell(e)
			if e.State == edge.Refused && len(e.Limits) > 0 && interactive {
				mu.Lock()
				limits = e.Limits
				mu.Unlock()
				stop()
			}
		}
		err := edge.Run(running, cfg)
		stop()
		found := edge.PolicyErrors(err)
		mu.Lock()
		if len(limits) > 0 && ctx.Err() == nil && errors.Is(err, context.Canceled) {
			found = limits
			err = fmt.Errorf("%w: a round asks for more", edge.ErrPolicy)
		}
		mu.Unlock()
		if len(found) == 0 || !interactive || ctx.Err() != nil {
			return err
		}
		if !c.mayAccept(found) {
			return err
		}
		c.asking.Lock()
		yes := c.asks(ctx, found)
		c.asking.Unlock()
		if !yes {
			return fmt.Errorf("%w, and was not accepted", edge.ErrPolicy)
		}
		if err := c.account.Consent(c.token, c.policy, found); err != nil {
			return err
		}
	}
}

// mayAccept reports whether all of what was found is an owner's to accept here: some limits
// are changed in the policy alone.
func (c *consent) mayAccept(found []edge.PolicyError) bool {
	trial := edge.Config{Policy: new(*c.policy)}
	for _, f := range found {
		if trial.Allow(f.Key, f.Have) != nil {
			return false
		}
	}
	return true
}

// asks says what is asked for and what it would mean, and waits for a yes.
func (c *consent) asks(ctx context.Context, found []edge.PolicyError) bool {
	c.settle()
	width, _ := terminal.Width(c.to.Stderr)
	fmt.Fprint(c.to.Stderr, edge.Escape(question(found, width), true))
	answer := make(chan string, 1)
	go func() { // a read of a terminal ends with its line, or with the process
		line, _ := bufio.NewReader(io.LimitReader(c.to.Stdin, 1<<10)).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		return strings.TrimSpace(line) == "yes"
	case <-ctx.Done():
		return false
	}
}

// question says what decides: what the job asks for beside the owner's limits, and once what that means.
// Without a terminal the error has more: the flags, and what the job's operator could do.
func question(found []edge.PolicyError, width int) string {
	var b strings.Builder
	b.WriteString("\nThis job asks for more than this device allows:\n")
	var whys []string
	for _, f := range found {
		limit, _, _ := strings.Cut(f.Want, " (")
		b.WriteString(terminal.Wrap(fmt.Sprintf("- %s: %s (your limit: %s)", f.Key, f.What, limit), width, "  ") + "\n")
		if !slices.Contains(whys, f.Why) {
			whys = append(whys, f.Why)
		}
	}
	for _, why := range whys {
		b.WriteString(terminal.Wrap(why+".", width, "") + "\n")
	}
	b.WriteString("Nothing of your data was sent for it. If you want it nevertheless, type yes: ")
	return b.String()
}

// printConsents reminds an owner of what was accepted earlier.
func printConsents(w io.Writer, given []edge.Consent) {
	if len(given) == 0 {
		return
	}
	var list []string
	for _, c := range given {
		list = append(list, c.Key+" "+c.Have)
	}
	fmt.Fprintln(w, edge.Escape("you accepted earlier of this coordinator: "+strings.Join(list, "; ")+" (--ask-again forgets it)", false))
}
