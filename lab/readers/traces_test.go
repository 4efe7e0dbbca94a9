package readers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/starling-fl/starling/coordinator/spans"
)

// TestCollectorReadsTraces: OpenTelemetry's own collector reads what is sent as it was meant.
func TestCollectorReadsTraces(t *testing.T) {
	bodies := make(chan []byte, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v, %v", r.Header, err)
		}
		bodies <- b
	}))
	defer s.Close()
	e, err := spans.Open(s.URL, "1.2", nil)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_800_000_000, 123_456_789)
	r := e.Round(at)
	r.Turn("keying", at.Add(time.Second))
	r.ShardTurn(0, "sharing", at.Add(2*time.Second))
	r.ShardTurn(1, "sharing", at.Add(2*time.Second))
	r.ShardOver(0, at.Add(3*time.Second), true, nil)
	r.ShardOver(1, at.Add(4*time.Second), false, spans.Attributes{"starling.devices": 7})
	r.Over(at.Add(5*time.Second), "too few", spans.Attributes{"starling.job": "invoices", "starling.round": 9_007_199_254_740_993})
	e.Close()

	in := ptraceotlp.NewExportRequest()
	if err := in.UnmarshalJSON(<-bodies); err != nil {
		t.Fatal(err)
	}
	all := in.Traces().ResourceSpans().At(0)
	if v, _ := all.Resource().Attributes().Get("service.name"); v.AsString() != "starling" {
		t.Errorf("service %q", v.AsString())
	}
	got := all.ScopeSpans().At(0).Spans()
	byID := map[string]ptrace.Span{}
	for i := range got.Len() {
		s := got.At(i)
		if s.TraceID().IsEmpty() || s.SpanID().IsEmpty() || s.TraceID() != got.At(0).TraceID() || s.Kind() != ptrace.SpanKindInternal {
			t.Errorf("span %v of trace %v, kind %v", s.SpanID(), s.TraceID(), s.Kind())
		}
		byID[s.SpanID().String()] = s
	}
	if len(byID) != 6 {
		t.Errorf("%d spans", len(byID))
	}
	failed := 0
	for _, s := range byID {
		parent, is := byID[s.ParentSpanID().String()]
		switch {
		case s.Name() == "round":
			job, _ := s.Attributes().Get("starling.job")
			round, _ := s.Attributes().Get("starling.round")
			if is || s.StartTimestamp().AsTime() != at.UTC() || s.EndTimestamp().AsTime() != at.Add(5*time.Second).UTC() || job.AsString() != "invoices" ||
				round.Int() != 9_007_199_254_740_993 || s.Status().Code() != ptrace.StatusCodeError || s.Status().Message() != "too few" {
				t.Errorf("round %v to %v, %v, %v", s.StartTimestamp(), s.EndTimestamp(), s.Attributes().AsRaw(), s.Status().Message())
			}
		case !is || s.Name() == "shard" && parent.Name() != "round" || s.Name() == "turn sharing" && parent.Name() != "shard":
			t.Errorf("%s is below %q", s.Name(), s.ParentSpanID())
		case s.Status().Code() == ptrace.StatusCodeError:
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d shards failed", failed)
	}
}
