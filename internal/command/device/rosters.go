package device

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/starling-fl/starling/edge"
)

// printRoster says who was in a shard.
func printRoster(w io.Writer, p *edge.ProvenRoster) error {
	var b strings.Builder
	fmt.Fprintf(&b, "round %d of %q, job %.16s: proved\n%s\n", p.Round, p.Job, p.Task, &p.Peers)
	for _, d := range p.Devices {
		fmt.Fprintf(&b, "  %s  enrolled %s, key %d of the log\n", d.Identity, d.Enrolled.Format(time.DateTime), d.Leaf)
	}
	fmt.Fprintf(&b, "under this head of the log, to be compared with others':\n%s", edge.Escape(p.Head, true))
	_, err := io.WriteString(w, b.String())
	return err
}

// printLogs says what an account knows of logs of enrolled keys.
func printLogs(b *strings.Builder, logs []edge.LogAccount) {
	for _, l := range logs {
		fmt.Fprintf(b, "log of enrolled keys %.16s: %d keys, last shown %s\n", l.Key, l.Keys, l.Seen.Format(time.DateTime))
		if l.Refused != "" {
			fmt.Fprintf(b, "REFUSED: another head under the same key, which does not go on from it. Known:\n%sRefused:\n%s", edge.Escape(l.Head, true), edge.Escape(l.Refused, true))
		}
	}
}
