// Package spans sends traces of rounds to an OpenTelemetry collector: a trace for each round, with
// a span for each turn and each shard. Traces name no device and hold no update, only counts and
// times. The methods of a nil Exporter, and of the nil Round that it returns, do nothing.
package spans

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// mostShards is how many shards of a round have spans; the round says how many there were.
const mostShards = 64

// Round is the trace of one round. It belongs to one goroutine.
type Round struct {
	to     *Exporter
	trace  string
	root   span
	turn   *span // of the cohort
	shards map[int]*shard
	done   []span
}

type shard struct{ whole, turn span }

// Attributes are counts and short texts, by name.
type Attributes map[string]any

// span is one of OTLP's, as JSON has it: hexadecimal ids, 64-bit numbers as decimal texts.
type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"` // 1: internal
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes,omitempty"`
	Status     *status     `json:"status,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	Text  *string `json:"stringValue,omitempty"`
	Count *string `json:"intValue,omitempty"`
}

type status struct {
	Message string `json:"message,omitempty"`
	Code    int    `json:"code"` // 2: error
}

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // ends the program where the system has no randomness
	return hex.EncodeToString(b)
}

func stamp(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// Round begins a round's trace.
func (e *Exporter) Round(at time.Time) *Round {
	if e == nil {
		return nil
	}
	r := &Round{to: e, trace: random(16), shards: map[int]*shard{}}
	r.root = r.begin("round", "", at)
	return r
}

func (r *Round) begin(name, parent string, at time.Time) span {
	return span{TraceID: r.trace, SpanID: random(8), Parent: parent, Name: name, Kind: 1, Start: stamp(at)}
}

func (r *Round) end(s span, at time.Time, with Attributes) {
	s.End, s.Attributes = stamp(at), with.list()
	r.done = append(r.done, s)
}

// Turn records that the cohort, or the last of its shards, has been in a turn since at.
func (r *Round) Turn(name string, at time.Time) {
	if r == nil {
		return
	}
	if r.turn != nil {
		r.end(*r.turn, at, nil)
	}
	s := r.begin("turn "+name, r.root.SpanID, at)
	r.turn = &s
}

// ShardTurn records that a shard has begun a turn.
func (r *Round) ShardTurn(n int, name string, at time.Time) {
	if r == nil || n >= mostShards {
		return
	}
	s := r.shards[n]
	if s == nil {
		s = &shard{whole: r.begin("shard", r.root.SpanID, at)}
		r.shards[n] = s
	} else {
		r.end(s.turn, at, nil)
	}
	s.turn = r.begin("turn "+name, s.whole.SpanID, at)
}

// ShardOver records that a shard is released, or failed.
func (r *Round) ShardOver(n int, at time.Time, failed bool, with Attributes) {
	if r == nil || r.shards[n] == nil {
		return
	}
	s := r.shards[n]
	delete(r.shards, n)
	r.end(s.turn, at, nil)
	if failed {
		s.whole.Status = &status{Code: 2}
	}
	r.end(s.whole, at, with)
}

// Over ends the trace and queues it for sending. failure says why nothing was released, "" if
// something was. It returns at once.
func (r *Round) Over(at time.Time, failure string, with Attributes) {
	if r == nil || r.to == nil {
		return
	}
	for n := range r.shards {
		r.ShardOver(n, at, failure != "", nil)
	}
	if r.turn != nil {
		r.end(*r.turn, at, nil)
	}
	if failure != "" {
		r.root.Status = &status{Message: strings.ToValidUTF8(failure[:min(len(failure), 200)], ""), Code: 2}
	}
	r.end(r.root, at, with)
	r.to.send(r.done)
	r.to = nil
}
