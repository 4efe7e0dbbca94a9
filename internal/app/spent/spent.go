// Package spent accounts for privacy ledgers: what a run has spent, and several together.
package spent

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// Report is the cost of a run, or of several over one population.
type Report struct {
	Runs      []ledgerRun   `json:"runs,omitempty"` // where several are composed
	Task      string        `json:"task"`
	Private   bool          `json:"private"`            // false: every secret was seeded, or there was no noise
	Unnoised  bool          `json:"no_noise,omitempty"` // a round was released without noise
	Entries   []ledgerLine  `json:"entries"`
	Head      string        `json:"head"` // hash of the last entry; of one run
	Delivered *dp.Guarantee `json:"delivered,omitempty"`
	// Delivered holds against the public, Coalition against the hostile share that sees rosters
	// (absent: it sees none), Visible against observers of who takes part.
	Coalition *dp.Guarantee `json:"coalition,omitempty"`
	Visible   *dp.Guarantee `json:"visible,omitempty"`
	Simulated *dp.Guarantee `json:"simulated,omitempty"`
	// Untrusted is what holds without trust in the coordinator; absent: nothing does.
	Untrusted *dp.Guarantee `json:"untrusted,omitempty"`
}

// ledgerRun is one of several runs, and what it spent by itself.
type ledgerRun struct {
	Dir string `json:"dir"`
	Report
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
	// Own is the noise that devices added themselves, all that is counted; absent: the
	// coordinator's is.
	Own    *dp.OwnNoise `json:"own,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Hash   string       `json:"hash"`
}

// Read verifies the ledgers and composes them.
func Read(dirs []string, delta float64, acct dp.Accountant) (Report, error) {
	var all Report
	var together spending
	heads := map[string]string{}
	for _, dir := range dirs {
		if err := named.Dir(dir); err != nil {
			return all, err
		}
		l, err := store.ReadLedger(dir)
		if err != nil {
			return all, err
		}
		if other, twice := heads[l.HeadString()]; twice {
			return all, usage.Errorf("%s and %s hold the same ledger: it would be counted twice", other, dir)
		}
		heads[l.HeadString()] = dir
		r, s, err := NewReport(l, delta, acct)
		if err != nil {
			return all, fmt.Errorf("%s: %w", dir, err)
		}
		if len(dirs) == 1 {
			return r, nil
		}
		if !l.Private {
			return all, usage.Errorf("%s is of a run that was reproducible or without noise, which protects nobody: nothing composed with it is private", dir)
		}
		all.Runs = append(all.Runs, ledgerRun{dir, r})
		together.add(s)
	}
	all.Private, all.Entries = true, []ledgerLine{}
	return all, together.account(&all, acct)
}

// spending is what guarantees are computed from.
type spending struct {
	events       []dp.Event
	delta, floor float64 // floor is the part of delta that floors have
	simulated    bool
}

// add joins what another run over the same population spent. Its floors may fail
// too; delta is the smaller.
func (s *spending) add(o spending) {
	s.events = append(s.events, o.events...)
	s.floor += o.floor
	s.simulated = s.simulated || o.simulated
	if s.delta == 0 || o.delta != 0 && o.delta < s.delta {
		s.delta = o.delta
	}
}

// colluding reports whether a coalition saw rosters of some round.
func (s spending) colluding() bool {
	return slices.ContainsFunc(s.events, func(e dp.Event) bool { return e.Coalition != (dp.Coalition{}) })
}

// account fills in the guarantees.
func (s spending) account(r *Report, acct dp.Accountant) error {
	if len(s.events) == 0 {
		return nil
	}
	if s.delta == 0 {
		return usage.Errorf("the ledger names no delta: give --delta")
	}
	if _, err := dp.CheckDelta(s.delta, 0); err != nil {
		return usage.Wrap(err)
	}
	if s.floor >= s.delta {
		return usage.Errorf("--delta %.3g: cohorts below a floor have %.3g of it already, give more", s.delta, s.floor)
	}
	stated := accounting.Budget{Delta: s.delta, Floor: s.floor, Accountant: acct}
	for _, q := range []struct {
		to   **dp.Guarantee
		want bool
		f    func([]dp.Event, float64, dp.Accountant) (dp.Guarantee, error)
	}{{&r.Delivered, true, accounting.Epsilon}, {&r.Coalition, s.colluding(), accounting.CoalitionEpsilon}, {&r.Visible, true, accounting.VisibleEpsilon}, {&r.Simulated, s.simulated, accounting.SimulatedEpsilon}, {&r.Untrusted, true, accounting.UntrustedEpsilon}} {
		if !q.want {
			continue
		}
		g, err := stated.Guarantee(q.f, s.events)
		if errors.Is(err, dp.ErrNoBound) {
			continue
		} else if err != nil {
			return err
		}
		*q.to = &g
	}
	return nil
}

// NewReport accounts one run's ledger, at its own delta where delta is 0.
func NewReport(l store.Ledger, delta float64, acct dp.Accountant) (Report, spending, error) {
	r := Report{Task: l.Task, Private: l.Private, Unnoised: l.Unnoised, Head: l.HeadString(), Entries: []ledgerLine{}}
	s, sampled := spending{delta: delta}, false
	for _, e := range l.Entries {
		ev := e.Event
		line := ledgerLine{
			Seq: e.Seq, Round: ev.Round, Kind: ev.Kind.String(),
			SamplingRate: ev.SamplingRate, NoiseMultiplier: ev.NoiseMultiplier, NoiseScale: ev.NoiseScale,
			ProviderRate: ev.ProviderRate, Hidden: ev.Hidden, B2: ev.B2, Sigma2: ev.Sigma2.String(), Dim: ev.Dim,
			Reason: e.Note.Reason, Hash: hex.EncodeToString(e.Hash[:]),
		}
		if ev.Certificate != ([32]byte{}) {
			line.Certificate = hex.EncodeToString(ev.Certificate[:])
			line.Method, line.Generator, line.Population = e.Cohort.Method, e.Cohort.Generator, e.Cohort.Population
		}
		if ev.Own != (dp.OwnNoise{}) {
			line.Own = &ev.Own
		}
		r.Entries = append(r.Entries, line)
		s.simulated = s.simulated || ev.NoiseScale < 1
		sampled = sampled || ev.SamplingRate < 1
		if g := e.Note.Delivered; g != nil {
			s.floor = max(s.floor, g.FloorDelta)
			if s.delta == 0 {
				s.delta = g.Delta
			}
		}
	}
	if sampled && s.floor == 0 { // its charges were all recovered after crashes, without a note
		s.floor = dp.FloorShare * s.delta
	}
	if !l.Private {
		return r, s, nil
	}
	s.events = l.Events()
	return r, s, s.account(&r, acct)
}

func (r Report) printSpent(w io.Writer) {
	if r.Delivered == nil {
		return
	}
	fmt.Fprintf(w, "\ndelivered  %s\n", r.Delivered)
	if r.Coalition != nil {
		fmt.Fprintf(w, "if devices told each other their shards' members\n           %s\n", r.Coalition)
	}
	if r.Visible.Epsilon != r.Delivered.Epsilon {
		fmt.Fprintf(w, "to those who saw who took part\n           %s\n", r.Visible)
	}
	if r.Untrusted != nil {
		fmt.Fprintf(w, "without trust in the coordinator, for a device in every round\n           %s\n", r.Untrusted)
	} else {
		fmt.Fprintln(w, "without trust in the coordinator\n           no bound: the coordinator alone adds noise")
	}
	if r.Simulated != nil {
		fmt.Fprintf(w, "of the simulated population, nobody's here\n           %s\n", r.Simulated)
	}
	if low := r.Delivered.EpsilonLower; r.Delivered.Accountant == dp.Tight && r.Delivered.Epsilon > 1.001*low {
		fmt.Fprintf(w, "the bounds are %.2g %% apart: the truth may be lower by that much, never higher\n", 100*(r.Delivered.Epsilon/low-1))
	}
}

func (r Report) Print(w io.Writer) error {
	if len(r.Runs) > 0 {
		for _, run := range r.Runs {
			fmt.Fprintf(w, "%s\n  task     %s, %d entries, chain verified\n  head     %s\n", run.Dir, run.Task, len(run.Entries), run.Head)
			if run.Delivered != nil {
				fmt.Fprintf(w, "  alone    %s\n", run.Delivered)
			}
		}
		fmt.Fprintln(w, "\nWho is in all of these has, against all that they released together:")
		r.printSpent(w)
		return nil
	}
	fmt.Fprintf(w, "task       %s\nentries    %d, chain verified\nhead       %s\n", r.Task, len(r.Entries), r.Head)
	switch {
	case r.Unnoised:
		fmt.Fprintln(w, "\nThis run added no noise: it protects nobody.")
	case !r.Private:
		fmt.Fprintln(w, "\nThis run was reproducible: its randomness was seeded. It protects nobody.")
	}
	r.printSpent(w)
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
