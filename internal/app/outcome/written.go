package outcome

import (
	"fmt"
	"io"

	"github.com/starling-fl/starling/model/evaluate"
)

// WrittenReport is what a finished job of texts says of itself, whose test split has prompts
// with completions: accuracies are of tokens, and what is written behind the prompts is held
// to what is right.
type WrittenReport struct {
	Report
	Before evaluate.CompletionScore `json:"before"` // of the base, behind the same prompts
	After  evaluate.CompletionScore `json:"after"`  // at the best rank
}

// Print writes the report for people.
func (r WrittenReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "\nWritten behind %d test prompts of %s\n\n  %-28s %12s %10s %8s\n", r.After.Completions, r.Task, "", "exact match", "same JSON", "ROUGE-L")
	line := func(what string, s evaluate.CompletionScore) {
		fmt.Fprintf(w, "  %-28s %10.1f %% %8.1f %% %8.3f\n", what, 100*s.ExactMatch, 100*s.SameJSON, s.RougeL)
	}
	line("base, before", r.Before)
	line(fmt.Sprintf("after %d rounds, rank %d", r.Rounds, r.BestRank), r.After)
	return r.Report.Print(w)
}
