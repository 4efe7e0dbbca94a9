package participation

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/statement"
	"github.com/starling-fl/starling/job/statement/wellknown"
)

// printAsks says who asks for the job and what for, and whether their domain confirms it; nothing where the coordinator
// does not say.
func printAsks(ctx context.Context, w io.Writer, cfg edge.Config, client *http.Client) {
	var about struct {
		Job  string               `json:"job"`
		Asks *statement.Statement `json:"asks"`
	}
	token, err := wire.ParseToken(cfg.Token)
	if err != nil || edge.AskAbout(ctx, cfg, &about) != nil || about.Asks == nil {
		return // of what is wrong with the coordinator joining says more
	}
	a := *about.Asks
	if err := a.Check(); err != nil {
		fmt.Fprintf(w, "note: the coordinator does not say readably who asks: %s\n", edge.Escape(err.Error(), false))
		return
	}
	verified := "not verified: anybody can write this"
	if a.Signature != "" {
		verified = "verified: " + a.Domain + " signed it"
		if err := wellknown.Verify(ctx, client, a, about.Job, token.URL); err != nil {
			verified = "NOT verified: " + err.Error()
		}
	}
	fmt.Fprintf(w, "asked by: %s (%s)\n", edge.Escape(a.Organisation, false), edge.Escape(verified, false))
	for _, l := range [][2]string{{"what for", a.Purpose}, {"gets the model", a.Receives}, {"until", until(a.Until)}, {"questions to", a.Contact}, {"terms", a.Terms}} {
		if l[1] != "" {
			fmt.Fprintf(w, "%s: %s\n", l[0], edge.Escape(l[1], false))
		}
	}
}

// until is the job's last day, and whether that is over.
func until(day string) string {
	if last, err := time.Parse(time.DateOnly, day); err == nil && time.Since(last) > 48*time.Hour {
		return day + ", which is over: ask whether this goes on"
	}
	return day
}
