package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/lab/loadtest"
)

const (
	mostLoad    = 50_000
	longestLoad = 24 * time.Hour
)

func newLoadtestCmd(a *command.App) *cobra.Command {
	var cfg loadtest.Config
	var lasts time.Duration
	var hosts []string
	cmd := &cobra.Command{
		Use:   "loadtest TOKEN|@FILE",
		Short: "Play thousands of light devices against a coordinator that is there to be tested",
		Long: `Play light devices against a coordinator: they enrol, take part in rounds with real
masking, drop out as they are told, and train nothing. It ends with the job, or after --for,
and says what the devices saw. What they enrol stays enrolled, and what they send is of no
use: point it at a job that was made for it, never at one with people in it.

A coordinator on another machine is left alone unless you name its host twice.`,
		Example: "  starling loadtest @token --devices 2000 --drop 0.05 --json\n" +
			"  starling loadtest @token --host staging.example.org --host staging.example.org",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("loadtest wants one join token, or @FILE with one")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cfg.Devices < 1 || cfg.Devices > mostLoad:
				return usage.Errorf("--devices is %d, want 1..%d", cfg.Devices, mostLoad)
			case !(cfg.Drop >= 0 && cfg.Drop <= 1):
				return usage.Errorf("--drop is %v, want 0..1", cfg.Drop)
			case cfg.Late < 0 || cfg.Late > time.Hour:
				return usage.Errorf("--late is %v, want at most an hour", cfg.Late)
			case lasts <= 0 || lasts > longestLoad:
				return usage.Errorf("--for is %v, want at most %v", lasts, longestLoad)
			}
			token, err := loadToken(args[0])
			if err != nil {
				return err
			}
			if err := mayLoad(token, hosts); err != nil {
				return err
			}
			for _, at := range cfg.By {
				if a, err := netip.ParseAddrPort(at); err != nil || !a.Addr().IsLoopback() && !slices.Contains(hosts, a.Addr().String()) {
					return usage.Errorf("--by is %q: want an address of this machine with its port, or one that --host names", at)
				}
			}
			fleet, err := loadtest.New(cfg, token.String())
			if err != nil {
				return err
			}
			return runLoadtest(cmd.Context(), a, fleet, lasts)
		},
	}
	cmd.Flags().IntVar(&cfg.Devices, "devices", 1000, "devices, each with an identity and a connection of its own")
	cmd.Flags().Float64Var(&cfg.Drop, "drop", 0, "chance that a device hangs up before its update, in each round, and comes back a second later")
	cmd.Flags().DurationVar(&cfg.Late, "late", 0, "how late one device sends its shares, in each round")
	cmd.Flags().StringArrayVar(&cfg.By, "by", nil, "address (host:port) that devices dial in place of the token's: a gateway; repeat it for more, which they then dial in turn")
	cmd.Flags().DurationVar(&lasts, "for", 10*time.Minute, "how long at most")
	cmd.Flags().StringArrayVar(&hosts, "host", nil, "host of a coordinator on another machine, which is yours to load; give it twice")
	return cmd
}

// loadToken is a token, or what the file behind @ holds.
func loadToken(text string) (wire.Token, error) {
	if path, ok := strings.CutPrefix(text, "@"); ok {
		b, err := named.Read(path, 1<<16)
		if err != nil {
			return wire.Token{}, err
		}
		text = strings.TrimSpace(string(b))
	}
	t, err := wire.ParseToken(text)
	if err != nil {
		return t, usage.Wrap(err)
	}
	return t, nil
}

// mayLoad refuses a coordinator elsewhere that was not named twice.
func mayLoad(t wire.Token, hosts []string) error {
	u, err := url.Parse(t.URL)
	if err != nil {
		return usage.Wrap(err)
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil // a name, also localhost, is whatever a resolver says
	}
	if len(hosts) != 2 || hosts[0] != host || hosts[1] != host {
		return usage.Errorf("the coordinator is at %s, which is not an address of this machine: if it is yours to load, and serves no real devices, "+
			"confirm it by giving --host twice: --host %s --host %s", host, host, host)
	}
	return nil
}

func runLoadtest(ctx context.Context, a *command.App, f *loadtest.Fleet, lasts time.Duration) error {
	bounded, stop := context.WithTimeout(ctx, lasts)
	defer stop()
	began := time.Now()
	f.Run(bounded)
	r := f.Report()
	r.Seconds = time.Since(began).Seconds()
	err := a.Emit(r, func(w io.Writer) error {
		fmt.Fprintf(w, "%d devices, at most %d connected at a time; %d saw the job's end, %d were sent away, %d connections broke\n",
			r.Devices, r.Connected, r.Finished, r.Ended, r.Broken)
		if r.Cause != "" {
			fmt.Fprintf(w, "of the latter: %q\n", r.Cause)
		}
		fmt.Fprintf(w, "to join took %.3f s (median), %.3f s (99 of 100), 64 at a time; in all %.1f s\n\n", r.HandshakeMedian, r.HandshakeP99, r.Seconds)
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		fmt.Fprintln(t, "round\tassigned\tcommitted\tabandoned\tdropped\tseconds")
		for _, one := range r.Rounds {
			fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t%.2f\n", one.Round, one.Assigned, one.Committed, one.Abandoned, one.Dropped, one.Seconds)
		}
		return t.Flush()
	})
	switch {
	case err != nil:
		return err
	case r.Connected == 0:
		return fmt.Errorf("no device got in: %s", r.Cause)
	case ctx.Err() != nil:
		return errors.New("interrupted; the counts until then are above")
	}
	return nil
}
