package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/starling-fl/starling/coordinator"
)

// progressView shows a running job on standard error: a line for each
// settled round and, on a terminal, a last line that follows the round's
// state. It is called from one goroutine.
type progressView struct {
	w       io.Writer
	live    bool // w is a terminal: the last line may be rewritten
	headed  bool
	pending bool // a live line is standing
	width   int
}

func newProgressView(w io.Writer) *progressView {
	v := &progressView{w: w, width: 100}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		v.live = true
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil {
			v.width = cols
		}
	}
	return v
}

// progressHeader names the columns of progressRow.
const progressHeader = " round  state        rank  cohort  dropped  accuracy  epsilon  bytes up    bytes down"

func (v *progressView) show(p coordinator.Progress) {
	settled := p.State == coordinator.StateCommitted || p.State == coordinator.StateAbandoned || p.State == coordinator.StateFinished
	if !settled && !v.live {
		return
	}
	if v.pending {
		fmt.Fprintf(v.w, "\r%s\r", strings.Repeat(" ", v.width-1))
		v.pending = false
	}
	if p.State == coordinator.StateFinished {
		return
	}
	if !v.headed {
		fmt.Fprintln(v.w, progressHeader)
		v.headed = true
	}
	row := progressRow(p)
	if settled {
		fmt.Fprintln(v.w, row)
		return
	}
	if len(row) >= v.width {
		row = row[:v.width-1]
	}
	fmt.Fprint(v.w, row)
	v.pending = true
}

func progressRow(p coordinator.Progress) string {
	accuracy := "      –"
	if best, ok := bestOf(p.Validation); ok {
		accuracy = fmt.Sprintf("%5.1f %%", 100*best.Accuracy)
	}
	rank := "–"
	if p.Rank > 0 {
		rank = fmt.Sprint(p.Rank)
	}
	row := fmt.Sprintf("%3d/%-3d %-12s %4s  %6d  %7d  %8s  %7s  %8s  %12s", p.Round, p.Rounds, p.State, rank, p.Cohort, p.Dropped,
		accuracy, epsilonText(p), byteText(p.BytesUp), byteText(p.BytesDown))
	if p.Reason != "" {
		row += "  " + p.Reason
	}
	return row
}

// epsilonText is the guarantee that the budget applies to; the result table
// labels both.
func epsilonText(p coordinator.Progress) string {
	switch {
	case p.Simulated != nil:
		return fmt.Sprintf("%.3f s", p.Simulated.Epsilon)
	case p.Delivered != nil:
		return fmt.Sprintf("%.3f", p.Delivered.Epsilon)
	}
	return "none"
}

func bestOf(all []coordinator.RankAccuracy) (best coordinator.RankAccuracy, ok bool) {
	for i, r := range all {
		if i == 0 || r.Accuracy > best.Accuracy {
			best = r
		}
	}
	return best, len(all) > 0
}

func byteText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}
