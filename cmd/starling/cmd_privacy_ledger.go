package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
)

// ledgerReport is what a run has spent.
type ledgerReport struct {
	Task      string        `json:"task"`
	Private   bool          `json:"private"` // false: every secret was seeded
	Entries   []ledgerLine  `json:"entries"`
	Head      string        `json:"head"` // hash of the last entry
	Delivered *dp.Guarantee `json:"delivered,omitempty"`
	Visible   *dp.Guarantee `json:"visible,omitempty"`
	Simulated *dp.Guarantee `json:"simulated,omitempty"`
}

type ledgerLine struct {
	Seq             uint64  `json:"seq"`
	Round           uint64  `json:"round"`
	Kind            string  `json:"kind"`
	SamplingRate    float64 `json:"sampling_rate"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	NoiseScale      float64 `json:"noise_scale"`
	ProviderRate    float64 `json:"provider_rate,omitempty"` // 0: a device is protected
	Hidden          bool    `json:"participation_hidden,omitempty"`
	B2              int64   `json:"b2"`
	Sigma2          string  `json:"sigma2"` // exact, grid units squared
	Dim             uint64  `json:"dim"`
	Certificate     string  `json:"certificate,omitempty"`
	// How the cohort was drawn, from the certificate.
	Method     string `json:"method,omitempty"`
	Generator  string `json:"generator,omitempty"`
	Population int    `json:"population,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Hash       string `json:"hash"`
}

func newPrivacyLedgerCmd(a *app) *cobra.Command {
	var delta float64
	var accountant string
	cmd := &cobra.Command{
		Use:   "ledger DIR",
		Short: "Verify a run's privacy ledger and print what it has spent",
		Long: `Read the ledger in a coordinator's folder, check its hash chain, account for
every entry again from what is recorded, and print both. A cut at the end of a
ledger does not show in itself: compare the head with one kept elsewhere.`,
		Example: "  starling privacy ledger ./run",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("privacy ledger wants the coordinator's folder, got %d arguments", len(args))
			}
			acct, err := dp.ParseAccountant(accountant)
			if err != nil {
				return usageError{err}
			}
			l, err := store.ReadLedger(args[0])
			if err != nil {
				return err
			}
			r, err := newLedgerReport(l, delta, acct)
			if err != nil {
				return err
			}
			return a.emit(r, r.print)
		},
	}
	cmd.Flags().Float64Var(&delta, "delta", 0, "account at this delta (default: the run's own)")
	cmd.Flags().StringVar(&accountant, "accountant", "tight", `"tight" or "rdp"`)
	return cmd
}

func newLedgerReport(l store.Ledger, delta float64, acct dp.Accountant) (ledgerReport, error) {
	r := ledgerReport{Task: l.Task, Private: l.Private, Head: l.HeadString(), Entries: []ledgerLine{}}
	simulated := false
	for _, e := range l.Entries {
		ev := e.Event
		line := ledgerLine{
			Seq: e.Seq, Round: ev.Round, Kind: ev.Kind.String(),
			SamplingRate: ev.SamplingRate, NoiseMultiplier: ev.NoiseMultiplier, NoiseScale: ev.NoiseScale, ProviderRate: ev.ProviderRate, Hidden: ev.Hidden,
			B2: ev.B2, Sigma2: ev.Sigma2.String(), Dim: ev.Dim,
			Reason: e.Note.Reason, Hash: hex.EncodeToString(e.Hash[:]),
		}
		if ev.Certificate != ([32]byte{}) {
			line.Certificate = hex.EncodeToString(ev.Certificate[:])
			line.Method, line.Generator, line.Population = e.Cohort.Method, e.Cohort.Generator, e.Cohort.Population
		}
		r.Entries = append(r.Entries, line)
		simulated = simulated || ev.NoiseScale < 1
		if g := e.Note.Delivered; g != nil && delta == 0 {
			delta = g.Delta
		}
	}
	if len(l.Entries) == 0 || !l.Private {
		return r, nil
	}
	if delta == 0 {
		return r, usagef("the ledger names no delta: give --delta")
	}
	if _, err := dp.CheckDelta(delta, 0); err != nil {
		return r, usageError{err}
	}
	for _, q := range []struct {
		to   **dp.Guarantee
		want bool
		f    func([]dp.Event, float64, dp.Accountant) (dp.Guarantee, error)
	}{{&r.Delivered, true, dp.Epsilon}, {&r.Visible, true, dp.VisibleEpsilon}, {&r.Simulated, simulated, dp.SimulatedEpsilon}} {
		if !q.want {
			continue
		}
		g, err := q.f(l.Events(), delta, acct)
		if err != nil {
			return r, err
		}
		*q.to = &g
	}
	return r, nil
}

func (r ledgerReport) print(w io.Writer) error {
	fmt.Fprintf(w, "task       %s\nentries    %d, chain verified\nhead       %s\n", r.Task, len(r.Entries), r.Head)
	if !r.Private {
		fmt.Fprintln(w, "\nThis run was reproducible: its randomness was seeded. It protects nobody.")
	}
	if r.Delivered != nil {
		fmt.Fprintf(w, "\ndelivered  %s\n", r.Delivered)
		if r.Visible.Epsilon != r.Delivered.Epsilon {
			fmt.Fprintf(w, "to those who saw who took part\n           %s\n", r.Visible)
		}
		if r.Simulated != nil {
			fmt.Fprintf(w, "of the simulated population, nobody's here\n           %s\n", r.Simulated)
		}
	}
	if len(r.Entries) == 0 {
		return nil
	}
	if last := r.Entries[len(r.Entries)-1]; last.Method != "" {
		fmt.Fprintf(w, "\ncohorts    %s from %s, last over %d members\n", last.Method, last.Generator, last.Population)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "seq\tround\tkind\tq\tz\tscale\tsigma\tdim\thash\treason")
	for _, e := range r.Entries {
		z := e.NoiseMultiplier * e.NoiseScale
		q := fmt.Sprintf("%.4g", e.SamplingRate)
		if e.ProviderRate > 0 { // the device's coin and the provider's
			q += fmt.Sprintf(" · %.4g", e.ProviderRate)
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%.5g\t%.4g\t%.5g\t%d\t%s\t%s\n", e.Seq, e.Round, e.Kind, q, e.NoiseMultiplier, e.NoiseScale, z*math.Sqrt(float64(e.B2)), e.Dim, e.Hash[:12], e.Reason)
	}
	return t.Flush()
}

// belief is the most that an even prior can become.
func belief(epsilon float64) float64 { return 1 / (1 + math.Exp(-epsilon)) }

// wrapText breaks text into lines of at most width runes, at blanks.
func wrapText(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
