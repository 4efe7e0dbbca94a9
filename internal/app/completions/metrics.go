package completions

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/internal/app/generation"
)

// counters are what /metrics tells. They are written here: Prometheus' library is a megabyte of the device's program, which
// links it for nothing else.
type counters struct {
	read, written, seconds atomic.Int64 // tokens, tokens, nanoseconds

	mu      sync.Mutex
	answers map[int]int64 // by status
}

func (c *counters) add(t generation.Text) {
	c.read.Add(int64(t.Read))
	c.written.Add(int64(t.Tokens))
}

// noted is a response whose status is counted.
type noted struct {
	http.ResponseWriter
	status int
}

func (n *noted) WriteHeader(status int) {
	if n.status == 0 {
		n.status = status
	}
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// counting counts answers.
func (s *server) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n := &noted{ResponseWriter: w}
		next.ServeHTTP(n, req)
		if n.status == 0 {
			n.status = http.StatusOK
		}
		s.counted.mu.Lock()
		defer s.counted.mu.Unlock()
		if s.counted.answers == nil {
			s.counted.answers = map[int]int64{}
		}
		s.counted.answers[n.status]++
	})
}

// metrics answers in Prometheus' text format, version 0.0.4.
func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	var b bytes.Buffer
	family := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	family("starling_generate_answers_total", "counter", "Answers to requests, by HTTP status.")
	s.counted.mu.Lock()
	for _, status := range slices.Sorted(maps.Keys(s.counted.answers)) {
		fmt.Fprintf(&b, "starling_generate_answers_total{code=\"%d\"} %d\n", status, s.counted.answers[status])
	}
	s.counted.mu.Unlock()
	family("starling_generate_tokens_total", "counter", "Tokens of prompts that were read, and that were written behind them.")
	fmt.Fprintf(&b, "starling_generate_tokens_total{kind=\"read\"} %d\n", s.counted.read.Load())
	fmt.Fprintf(&b, "starling_generate_tokens_total{kind=\"written\"} %d\n", s.counted.written.Load())
	family("starling_generate_seconds_total", "counter", "Time that requests took once it was their turn.")
	fmt.Fprintf(&b, "starling_generate_seconds_total %g\n", time.Duration(s.counted.seconds.Load()).Seconds())
	family("starling_generate_requests", "gauge", "Requests that are answered now, and that wait for their turn.")
	now, all := len(s.turn), len(s.waiting)
	fmt.Fprintf(&b, "starling_generate_requests{state=\"now\"} %d\n", now)
	fmt.Fprintf(&b, "starling_generate_requests{state=\"waiting\"} %d\n", max(0, all-now))
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write(b.Bytes())
}
