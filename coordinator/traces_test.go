package coordinator

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/spans"
)

// told is a span as a collector is told of it.
type told struct {
	TraceID, SpanID, ParentSpanID, Name string
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
	Status struct {
		Code    int
		Message string
	}
}

func (s told) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

func (s told) times(t *testing.T) (from, to int64) {
	t.Helper()
	from, err := strconv.ParseInt(s.StartTimeUnixNano, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if to, err = strconv.ParseInt(s.EndTimeUnixNano, 10, 64); err != nil || to < from {
		t.Fatalf("%s ends at %s: %v", s.Name, s.EndTimeUnixNano, err)
	}
	return from, to
}

// TestRoundsAreTraced: a collector is told of each round, its turns one after another, its shards
// and theirs, with counts and without a device.
func TestRoundsAreTraced(t *testing.T) {
	const n = 8
	bodies := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies <- b
	}))
	defer collector.Close()
	exporter, err := spans.Open(collector.URL, "1", nil)
	if err != nil {
		t.Fatal(err)
	}
	job := tinyJob(n)
	job.Rounds, job.Shard.Size, job.Cohort.Floor = 2, 4, n
	tb := setTable(t, Config{Job: job, Traces: exporter, Hosts: []string{}}, n, nil)
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	exporter.Close()
	close(bodies)
	round := 0
	for body := range bodies {
		round++
		var in struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []told } }
		}
		if err := json.Unmarshal(body, &in); err != nil {
			t.Fatal(err)
		}
		all := in.ResourceSpans[0].ScopeSpans[0].Spans
		root := all[slices.IndexFunc(all, func(s told) bool { return s.ParentSpanID == "" })]
		for key, want := range map[string]string{"starling.job": "tiny", "starling.round": strconv.Itoa(round), "starling.outcome": "released", "starling.shards": "2",
			"starling.devices.drawn": "8", "starling.devices.dropped": "0", "starling.devices.absent": "0"} {
			if got := root.attribute(key); got != want {
				t.Errorf("round %d: %s is %q, want %q", round, key, got, want)
			}
		}
		from, to := root.times(t)
		turns := map[string][]string{}
		ended := map[string]int64{}
		devices := 0
		for _, s := range all {
			begins, ends := s.times(t)
			if s.TraceID != root.TraceID || begins < from || ends > to {
				t.Errorf("round %d: %s is not within its round", round, s.Name)
			}
			switch {
			case s.Name == "shard":
				count, err := strconv.Atoi(s.attribute("starling.devices"))
				if err != nil || s.ParentSpanID != root.SpanID {
					t.Errorf("a shard of %q: %v", s.ParentSpanID, err)
				}
				devices += count
			case s.Name != "round":
				if last := ended[s.ParentSpanID]; last != 0 && last != begins {
					t.Errorf("round %d: %s begins %d ns after the turn before", round, s.Name, begins-last)
				}
				ended[s.ParentSpanID] = ends
				turns[s.ParentSpanID] = append(turns[s.ParentSpanID], strings.TrimPrefix(s.Name, "turn "))
			}
		}
		if devices != n || len(turns) != 3 {
			t.Errorf("round %d: %d devices in shards, turns of %d", round, devices, len(turns))
		}
		for of, names := range turns {
			want := "sharing collecting confirming unmasking"
			if of == root.SpanID {
				want = "gathering keying " + want + " releasing"
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("round %d: turns %s, want %s", round, got, want)
			}
		}
		for _, d := range tb.c.fleet.All() {
			for _, form := range []string{hex.EncodeToString(d.ID[:]), base64.StdEncoding.EncodeToString(d.ID[:]), hex.EncodeToString(d.ID[:8])} {
				if strings.Contains(string(body), form) {
					t.Errorf("round %d names a device", round)
				}
			}
		}
	}
	if round != 2 {
		t.Errorf("told of %d rounds", round)
	}
}
