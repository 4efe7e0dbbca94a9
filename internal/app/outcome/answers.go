package outcome

import (
	"fmt"
	"io"

	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model/evaluate"
)

// AnswerReport is what a finished job of answers says of itself. Scores are on the
// test split; validation alone chose the rank.
type AnswerReport struct {
	Report
	Before      evaluate.AnswerScore `json:"before"` // of the base, on the same questions
	After       evaluate.AnswerScore `json:"after"`  // at the best rank
	Validations int                  `json:"validation_questions"`
	Questions   int                  `json:"test_questions"`
}

// Print writes the report for people.
func (r AnswerReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "\n%d test questions of %s\n\n", r.Questions, r.Task)
	fmt.Fprintf(w, "  %-28s %12s %9s %6s\n", "", "exact match", "token F1", "ANLS")
	line := func(what string, s evaluate.AnswerScore) {
		fmt.Fprintf(w, "  %-28s %10.1f %% %9.1f %6.1f\n", what, 100*s.ExactMatch, 100*s.TokenF1, 100*s.ANLS)
	}
	line("base, before", r.Before)
	line(fmt.Sprintf("after %d rounds, rank %d", r.Rounds, r.BestRank), r.After)
	fmt.Fprintln(w)
	for _, text := range []string{r.Simulated, r.Delivered} {
		if text != "" {
			fmt.Fprintf(w, "  %s\n", text)
		}
	}
	_, err := fmt.Fprintf(w, "  %s up and %s down a device and round, %d device-rounds dropped, %d absent, %.0f s\n  checkpoint: %s\n",
		terminal.Bytes(int64(r.BytesUp)), terminal.Bytes(int64(r.BytesDown)), r.Dropped, r.Absent, r.Seconds, r.Checkpoint)
	return err
}
