package accounts

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// Report summarizes the contributions of a data set.
type Report struct {
	Data  string            `json:"data"`
	Jobs  []edge.JobAccount `json:"jobs"`
	Logs  []edge.LogAccount `json:"logs,omitempty"` // of enrolled keys
	Spent edge.Spent        `json:"spent"`
	Shown edge.Shown        `json:"shown"` // if everybody else lies
}

// ReportOf returns what the data set in the file data has given, as its account says.
func ReportOf(data string, account *edge.Account) (r Report, err error) {
	r = Report{Data: data, Jobs: SortedJobs(account), Logs: account.Logs(), Shown: account.Shown()}
	r.Spent, err = account.Spent()
	return r, err
}

// SortedJobs returns an account's jobs, the last answered first.
func SortedJobs(account *edge.Account) []edge.JobAccount {
	jobs := account.Jobs()
	slices.SortFunc(jobs, func(a, b edge.JobAccount) int {
		if a.Last != b.Last {
			return int(b.Last - a.Last)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return jobs
}

// Print writes the contributions to each job so far, and their total cost.
func Print(w io.Writer, account *edge.Account) error {
	var b strings.Builder
	jobs := SortedJobs(account)
	for _, j := range jobs {
		cost := ""
		if g, ok, err := j.Epsilon(); err == nil && ok {
			cost = fmt.Sprintf("; seen from here, if the noise is as announced: %v", g)
			if own, ok, err := j.Untrusted(); err == nil && ok {
				cost += fmt.Sprintf("; if everybody else lies, by this device's own noise: %v", own)
			} else {
				cost += "; without trust in the coordinator: no bound"
			}
		}
		name := fmt.Sprintf("%q", j.Name)
		if j.Forgotten {
			name = "a job that was forgotten, " + j.Task[:min(8, len(j.Task))]
		}
		fmt.Fprintf(&b, "given so far to %s: %d of %d rounds%s\n", name, j.Contributed, j.Promised, cost)
		if j.Up+j.Down > 0 {
			fmt.Fprintf(&b, "  sent %s, received %s", terminal.Bytes(j.Up), terminal.Bytes(j.Down))
			if bits, ok := j.Bits(); ok {
				fmt.Fprintf(&b, "; if everybody else lies, %.3g bits of your data at most", bits)
				if one, ok := j.ExampleBits(); ok {
					fmt.Fprintf(&b, ", of them %.3g about any one example", one)
				}
			}
			b.WriteString("\n")
		}
		if line := sparkline(j.History); line != "" {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	s, err := account.Spent()
	if err != nil {
		return err
	}
	if s.Jobs > 1 {
		if s.Devices != nil {
			fmt.Fprintf(&b, "in all, to jobs that protect devices: %v\n", *s.Devices)
		}
		if s.Providers != nil {
			fmt.Fprintf(&b, "in all, to jobs that protect providers: %v\n", *s.Providers)
		}
	}
	if shown, most := account.Shown(), edge.DefaultPolicy(); shown.Data > 0 {
		fmt.Fprintf(&b, "in all, if everybody else lies: %.3g bits about any one example at most, and %.3g of all of the data; by default a stranger's jobs may bring these to %.6g and %.6g (--example-bits, --bits)\n",
			shown.Example, shown.Data, most.ExampleBits, most.Bits)
	}
	if n := account.Shown().Unbounded; n > 0 {
		fmt.Fprintf(&b, "%d rounds had no noise of this device's own: if everybody else lies, nothing bounds what they told, and the bits above do not count them\n", n)
	}
	if len(s.Noiseless) > 0 {
		fmt.Fprintf(&b, "what was given to %s has no bound: no protecting noise was announced\n", quoted(s.Noiseless))
	}
	printLogs(&b, account.Logs())
	_, err = io.WriteString(w, b.String())
	return err
}

// sparkline draws how a job's rounds came about, from its first to its last moment.
func sparkline(h []edge.Moment) string {
	if len(h) < 2 || h[len(h)-1].At == h[0].At {
		return ""
	}
	const columns = 32
	levels := []rune("▁▂▃▄▅▆▇█")
	from, to := h[0], h[len(h)-1]
	var b strings.Builder
	i := 0
	for c := range columns {
		until := from.At + (to.At-from.At)*int64(c+1)/columns
		for i+1 < len(h) && h[i+1].At <= until {
			i++
		}
		b.WriteRune(levels[min(len(levels)-1, int(float64(h[i].Rounds)/float64(to.Rounds)*float64(len(levels)-1)+.5))])
	}
	day := func(at int64) string { return time.Unix(at, 0).Format("2006-01-02 15:04") }
	return fmt.Sprintf("%s  %d rounds from %s to %s", b.String(), to.Rounds, day(from.At), day(to.At))
}

// PrintRoster writes the members of a shard.
func PrintRoster(w io.Writer, p *edge.ProvenRoster) error {
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

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}
