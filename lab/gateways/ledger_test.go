package gateways

import (
	"fmt"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
)

func TestAgree(t *testing.T) {
	entries := func(rounds ...uint64) (l store.Ledger) {
		for _, r := range rounds {
			l.Entries = append(l.Entries, store.Entry{Event: dp.Event{Round: r}})
		}
		return l
	}
	fleet := func(acts string) []byte {
		var all []string
		for _, a := range strings.Fields(acts) {
			act, round, _ := strings.Cut(a, ":")
			all = append(all, `{"act":"`+act+`","round":`+round+`}`)
		}
		return []byte(`{"entries":[` + strings.Join(all, ",") + `]}`)
	}
	for _, c := range []struct {
		job        store.Ledger
		fleet      string
		open, said string
	}{
		{entries(1, 2), "reserve:1 charge:1 reserve:2 charge:2 reserve:3 release:3", "[]", ""},
		{entries(1), "reserve:1 charge:1 reserve:2", "[2]", ""},
		{entries(1, 1), "reserve:1 charge:1", "[]", "round 1 is charged twice"},
		{entries(1), "reserve:1 charge:1 charge:1", "[]", "round 1 is charged to the fleet twice"},
		{entries(), "reserve:1 charge:1", "[]", "not in its job's ledger"},
		{entries(1, 2), "reserve:1 charge:1", "[]", "rounds [2] were charged, and not to the fleet"},
	} {
		released, open, err := Agree(c.job, fleet(c.fleet))
		if released != len(c.job.Entries) || (err == nil) != (c.said == "") || err != nil && !strings.Contains(err.Error(), c.said) || fmt.Sprint(open) != c.open {
			t.Errorf("%s: %d released, %v open, %v; want %s and %q", c.fleet, released, open, err, c.open, c.said)
		}
	}
	if _, _, err := Agree(entries(), []byte("{")); err == nil {
		t.Error("half a ledger agrees")
	}
}
