package server

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/edge"
)

// What a round takes is tried before joining: by the program of the greatest rank that
// devices will be assigned, a blob that anybody may fetch. Nobody enrols by it.
func TestAQuoteBeforeJoining(t *testing.T) {
	j := tinyJob(3)
	c, err := coordinator.New(coordinator.Config{Job: j, Dir: t.TempDir(), Base: tinyBase(t)})
	ok(t, err)
	defer func() { ok(t, c.Close()) }()
	s, err := New(c, Config{})
	ok(t, err)
	devices := httptest.NewServer(s.Handler())
	defer devices.Close()

	var programs []coordinator.OfferedProgram
	for range 2 { // compiled once
		w := ask(s.Handler(), "GET", "/v1/job/programs")
		before := programs
		if w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &programs) != nil || len(programs) != 2 {
			t.Fatalf("programs: %d %s", w.Code, w.Body)
		}
		if before != nil && !slices.Equal(programs, before) {
			t.Errorf("%v, before %v", programs, before)
		}
	}
	token, err := edge.JoinToken(devices.URL)
	ok(t, err)
	q, err := edge.AskQuote(t.Context(), edge.Config{Token: token}, 1, 20*time.Millisecond)
	ok(t, err)
	if q.Step <= 0 || q.Memory < 1<<16 || q.Round.Batch != j.Training.Batch || q.Round.Steps != j.Training.Steps || q.Base == 0 {
		t.Errorf("%+v", q)
	}
	// What the program takes beyond the owner's limits is known by this, before anybody joins.
	mean := edge.DefaultPolicy()
	mean.Work = 1000
	_, err = edge.AskQuote(t.Context(), edge.Config{Token: token, Policy: &mean}, 1, time.Millisecond)
	if found := edge.PolicyErrors(err); len(found) != 1 || found[0].Key != "work" {
		t.Errorf("%v with a limit of 1000 units of work", err)
	}
	if got := c.Status().Enrolled; got != 0 {
		t.Errorf("%d devices have enrolled", got)
	}
}
