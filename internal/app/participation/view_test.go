package participation

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/edge"
)

// What a socket says to its programmer is not a word for a device's owner.
func TestWordsAreForPeople(t *testing.T) {
	for text, want := range map[string]string{
		"dial tcp 127.0.0.1:1: connect: connection refused":    "nothing listens at the coordinator's address: is it running?",
		"websocket: close 1006 (code 1006)":                    "the connection broke",
		"unexpected EOF":                                       "the connection broke",
		"read tcp 10.0.0.1:5: i/o timeout":                     "the coordinator does not answer",
		"https://a.example answers 503":                        "the coordinator, or a proxy before it, is not ready",
		"context deadline exceeded":                            "the coordinator does not answer",
		"failed to get reader: connection reset by peer":       "the connection broke",
		"dial tcp 10.0.0.1:5: connect: no route to host":       "the network does not reach the coordinator",
		"dial tcp 10.0.0.1:5: connect: network is unreachable": "the network does not reach the coordinator",
	} {
		got := words(edge.Event{State: edge.Backoff, Text: text, Total: 5000})
		if got != "no connection; trying again in 5 s: "+want {
			t.Errorf("%q is told as %q", text, got)
		}
	}
	limit := edge.Event{State: edge.Backoff, Text: "its owner's limit", Total: 6 * 3600_000, Limited: true}
	if got := words(limit); got != "resting for 6 h 0 min: its owner's limit" {
		t.Error(got)
	}
	if got := words(edge.Event{State: edge.Backoff, Text: "the coordinator is full", Total: 90_000}); got != "no connection; trying again in 2 min: the coordinator is full" {
		t.Error(got)
	}
	for total, want := range map[int64]string{1: "at once", 999: "at once", 1000: "in 1 s"} {
		if got := words(edge.Event{State: edge.Backoff, Total: total}); got != "no connection; trying again "+want+": the coordinator gave no reason" {
			t.Errorf("after %d ms: %s", total, got)
		}
	}
	for _, s := range []edge.State{edge.Connecting, edge.Preparing, edge.Waiting, edge.Keying, edge.Fetching, edge.Training, edge.Uploading, edge.Collecting,
		edge.Revealing, edge.Committed, edge.Abandoned, edge.Dropped, edge.Refused, edge.Backoff, edge.Finished} {
		if got := words(edge.Event{State: s, Round: 3}); got == "" || got == string(s)+" round 3" {
			t.Errorf("%s is told as %q", s, got)
		}
	}
}

// Whom a device does not reach is named, and how long it tries.
func TestNoConnectionNamesTheAddress(t *testing.T) {
	var b bytes.Buffer
	v := newView(&b, nil, func() uint64 { return 0 })
	v.where = "https://fl.example:7411"
	v.Show(edge.Event{State: edge.Backoff, Text: "dial tcp 127.0.0.1:1: connect: connection refused", Total: 5000})
	v.Show(edge.Event{State: edge.Backoff, Text: "its owner's limit", Total: 6 * 3600_000, Limited: true})
	want := "no connection to https://fl.example:7411; trying again in 5 s, until this is stopped: nothing listens at the coordinator's address: is it running?\n" +
		"resting for 6 h 0 min: its owner's limit\n"
	if b.String() != want {
		t.Errorf("%q", b.String())
	}
}

// Where there is no terminal each event that matters is a line, and nothing is written again.
func TestPlainLines(t *testing.T) {
	var b bytes.Buffer
	v := newView(&b, nil, func() uint64 { return 0 })
	v.Show(edge.Event{State: edge.Training, Round: 2, Rank: 4})
	for i := range int64(10) {
		v.Show(edge.Event{State: edge.Training, Round: 2, Done: i + 1, Total: 10})
	}
	v.Show(edge.Event{State: edge.Committed, Round: 2, Text: "\x1b[2J"})
	if got := b.String(); got != "training at rank 4 of round 2\nround 2 is made\n" {
		t.Errorf("%q", got)
	}
}

// Training that came to nothing is told, on a terminal above the line that is written again, and
// the report counts its rounds.
func TestZerosAreTold(t *testing.T) {
	failed := edge.Event{State: edge.Training, Round: 2, Rank: 4, Zeros: true, Text: "the update is not finite: this device sends zeros in its place"}
	want := "training at rank 4 of round 2: the update is not finite: this device sends zeros in its place"
	for _, live := range []bool{false, true} {
		var b bytes.Buffer
		v := newView(&b, nil, func() uint64 { return 0 })
		v.live, v.width = live, 200
		v.Show(edge.Event{State: edge.Training, Round: 2, Rank: 4})
		v.Show(failed)
		v.Show(edge.Event{State: edge.Uploading, Round: 2})
		if got := b.String(); !strings.Contains(got, want+"\n") {
			t.Errorf("live %t: %q", live, got)
		}
	}
	var r Report
	for _, e := range []edge.Event{failed, failed, {State: edge.Committed, Round: 2}, {State: edge.Training, Round: 3}, {State: edge.Committed, Round: 3}} {
		r.count(e)
	}
	if got := r.given(); r.RoundsZeros != 1 || !strings.Contains(got, "took part in 2 rounds") || !strings.Contains(got, "1 of them with zeros for an update (the update is not finite") {
		t.Errorf("%+v: %s", r, got)
	}
}

// With --json every event is a line of JSON, and nothing is said beside.
func TestEventsAreJSON(t *testing.T) {
	var out, said bytes.Buffer
	v := newView(&said, json.NewEncoder(&out), func() uint64 { return 0 })
	v.Show(edge.Event{State: edge.Training, Round: 2, Done: 1, Total: 10, Up: 5})
	v.Show(edge.Event{State: edge.Backoff, Text: "dial tcp", Total: 7})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var e edge.Event
	if len(lines) != 2 || said.Len() != 0 || json.Unmarshal([]byte(lines[1]), &e) != nil || e.Text != "dial tcp" || e.Total != 7 {
		t.Errorf("%q beside %q", out.String(), said.String())
	}
}

// The line of a terminal has a bar, the time left and bytes, fits, and is gone before
// anything else is written.
func TestTheLineOfATerminal(t *testing.T) {
	var b bytes.Buffer
	v := newView(&b, nil, func() uint64 { return 40 })
	v.live, v.width = true, 100
	began := time.Now().Add(-100 * time.Second)
	for i := range uint64(5) {
		v.pace.note(10+i, began.Add(time.Duration(i)*20*time.Second))
	}
	v.Show(edge.Event{State: edge.Training, Round: 15, Version: 14, Done: 3, Total: 4, Up: 1_200_000, Down: 24_000_000})
	got := b.String()
	if want := "[#####-----------] 14 of 40 rounds · about 8 min left · training, step 3 of 4 · sent 1.2 MB · recei"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	b.Reset()
	v.Show(edge.Event{State: edge.Training, Round: 15, Done: 4, Total: 4})
	if b.Len() != 0 {
		t.Errorf("painted again within %v: %q", repaint, b.String())
	}
	if _, err := v.Write([]byte("note\n")); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != "\r"+strings.Repeat(" ", 99)+"\rnote\n" {
		t.Errorf("%q", got)
	}
	b.Reset()
	v.Show(edge.Event{State: edge.Dropped, Round: 15, Text: "too late"})
	if got := b.String(); !strings.HasPrefix(got, "round 15 went on without this device; it joins the next one: too late\n[") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
	v.Clear()
	b.Reset()
	v.width = 3
	v.Show(edge.Event{State: edge.Waiting})
	if got := b.String(); got != "[#" {
		t.Errorf("%q", got)
	}
}

func TestPace(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var p pace
	p.note(7, at(0))
	p.note(8, at(100)) // what was under way when it came is not timed
	p.note(9, at(110))
	if _, ok := p.left(20, at(110)); ok {
		t.Error("told after one round")
	}
	p.note(10, at(120))
	if d, ok := p.left(20, at(125)); !ok || d != 95*time.Second {
		t.Errorf("%v %v", d, ok)
	}
	if _, ok := p.left(20, at(200)); ok {
		t.Error("told although it has stalled")
	}
	if _, ok := p.left(10, at(120)); ok {
		t.Error("told of a job that is over")
	}
	p.note(2, at(130))
	if p.version != 2 || !p.from.IsZero() {
		t.Errorf("%+v", p)
	}
}
