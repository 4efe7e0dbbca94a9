package round

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the scenarios' expected effects")

// TestScenarios replays testdata/*.txt. A line "round key=value ..." makes a
// machine, "> event" steps it, and the lines below are the effects expected;
// "#" starts a comment. `go test -update` rewrites the effects.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(b))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(b) {
				t.Errorf("%s differs from what the machine does:\n%s", file, firstDifference(string(b), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := "(end)", "(end)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\n  file:    %s\n  machine: %s", i+1, a, b)
		}
	}
	return ""
}

func replay(t *testing.T, text string) string {
	var out strings.Builder
	var m *Machine
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
		case strings.HasPrefix(line, "round "):
			fmt.Fprintln(&out, line)
			var err error
			if m, err = New(parseConfig(t, line)); err != nil {
				t.Fatalf("line %d: %v", n+1, err)
			}
		case strings.HasPrefix(line, "> "):
			fmt.Fprintln(&out, line)
			evs := parseEvents(t, strings.Fields(line[2:]))
			for _, ev := range evs {
				for _, eff := range m.Take(ev) {
					fmt.Fprintln(&out, "  "+formatEffect(eff))
				}
			}
		}
	}
	return out.String()
}

func parseDevices(t *testing.T, s string) []Device {
	var ds []Device
	if s == "" {
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			t.Fatal(err)
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(hi); err != nil {
				t.Fatal(err)
			}
		}
		for ; a <= b; a++ {
			ds = append(ds, Device(a))
		}
	}
	return ds
}

func parseState(t *testing.T, s string) State {
	i := slices.Index(stateNames[:], s)
	if i < 0 {
		t.Fatalf("state %q", s)
	}
	return State(i)
}

func parseConfig(t *testing.T, line string) Config {
	cfg := Config{Floor: 2, Enough: 1, Grace: 100 * time.Millisecond}
	quorum := 2
	for _, f := range strings.Fields(line)[1:] {
		k, v, _ := strings.Cut(f, "=")
		switch k {
		case "cohort":
			cfg.Cohort = parseDevices(t, v)
		case "floor":
			cfg.Floor, _ = strconv.Atoi(v)
		case "quorum":
			quorum, _ = strconv.Atoi(v)
		case "enough":
			cfg.Enough, _ = strconv.ParseFloat(v, 64)
		default:
			t.Fatalf("key %q", k)
		}
	}
	for s := range cfg.Limits {
		cfg.Limits[s] = Limit{Timeout: time.Duration(s+1) * time.Second, Quorum: quorum}
	}
	return cfg
}

func parseEvents(t *testing.T, f []string) []Event {
	each := func(arg string, ev func(Device) Event) (evs []Event) {
		for _, d := range parseDevices(t, arg) {
			evs = append(evs, ev(d))
		}
		return evs
	}
	rest := strings.Join(f[1:], " ")
	shardOf := func(i int) int {
		if i >= len(f) {
			return Whole
		}
		n, err := strconv.Atoi(f[i])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	switch f[0] {
	case "start":
		return []Event{Start{}}
	case "received":
		return each(f[2], func(d Device) Event { return Received{d, parseState(t, f[1])} })
	case "lost":
		return each(f[1], func(d Device) Event { return Lost{d} })
	case "expelled":
		return each(f[1], func(d Device) Event { return Expelled{d} })
	case "back":
		return each(f[1], func(d Device) Event { return Back{d} })
	case "deadline": // of a state, and a shard where there is one
		return []Event{Deadline{shardOf(2), parseState(t, f[1])}}
	case "sharded": // 1,2,3/2 4,5,6/2
		var s Sharded
		for _, a := range f[1:] {
			ds, th, _ := strings.Cut(a, "/")
			n, _ := strconv.Atoi(th)
			s.Shards = append(s.Shards, Shard{parseDevices(t, ds), n})
		}
		return []Event{s}
	case "stored":
		return []Event{Stored{shardOf(1)}}
	case "shard-failed":
		i, _ := strconv.Atoi(f[1])
		return []Event{ShardFailed{i, strings.Join(f[2:], " ")}}
	case "released":
		return []Event{Released{}}
	case "release-failed":
		return []Event{ReleaseFailed{rest}}
	case "abort":
		return []Event{Abort{rest}}
	}
	t.Fatalf("event %q", f[0])
	return nil
}

func formatEffect(e Effect) string {
	switch e := e.(type) {
	case Await:
		if e.Shard == Whole {
			return fmt.Sprintf("await %v %v", e.State, e.Timeout)
		}
		return fmt.Sprintf("await %d %v %v", e.Shard, e.State, e.Timeout)
	case Assign:
		return fmt.Sprintf("assign %v", e.Devices)
	case Cut:
		return fmt.Sprintf("cut %v", e.Devices)
	case SendRoster:
		return fmt.Sprintf("send-roster %d", e.Shard)
	case DeliverShares:
		return fmt.Sprintf("deliver-shares %d %v", e.Shard, e.Members)
	case PersistSurvivors:
		return fmt.Sprintf("persist-survivors %d %v", e.Shard, e.Members)
	case AnnounceSurvivors:
		return fmt.Sprintf("announce-survivors %d %v", e.Shard, e.Members)
	case PersistIntent:
		return "persist-intent"
	case SendSignatures:
		return fmt.Sprintf("send-signatures %d %v", e.Shard, e.Members)
	case FailShard:
		return fmt.Sprintf("fail-shard %d: %s", e.Shard, e.Reason)
	case Drop:
		return fmt.Sprintf("drop %v: did not answer in %v", e.Devices, e.State)
	case Reject:
		return fmt.Sprintf("reject %d %v: %v", e.Device, e.Turn, e.Refusal)
	case Release:
		if e.NoiseOnly {
			return "release noise only"
		}
		return fmt.Sprintf("release %v", e.Shards)
	case Charge:
		return "charge: " + e.Reason
	case Finish:
		return fmt.Sprintf("finish %v charged=%v %s", e.State, e.Charged, e.Reason)
	}
	return fmt.Sprintf("unknown %T", e)
}
