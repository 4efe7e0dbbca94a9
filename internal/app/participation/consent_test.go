package participation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/starling-fl/starling/edge"
)

// A question has a line for each limit and each reason once, also where reasons alternate.
func TestQuestionIsShort(t *testing.T) {
	var found []edge.PolicyError
	for i := range 8 {
		found = append(found, edge.PolicyError{Key: fmt.Sprint("key", i), What: "the job asks for it", Want: "at most 8 (in the job privacy.groups: 4 would do)",
			Why: []string{"It is your time", "It tells of your data"}[i%2]})
	}
	said := question(found, 120)
	if n := strings.Count(said, "\n"); n != 1+1+8+2 {
		t.Errorf("%d lines:\n%s", n, said)
	}
	for _, want := range []string{"- key3: the job asks for it (your limit: at most 8)\n", "It is your time.\nIt tells of your data.\n", "type yes: "} {
		if !strings.Contains(said, want) {
			t.Errorf("does not say %q:\n%s", want, said)
		}
	}
	if strings.Count(said, "It is your time") != 1 {
		t.Errorf("says a reason twice:\n%s", said)
	}
}

// What a device shows of an event is one line, however many limits its text names.
func TestWordsAreOneLine(t *testing.T) {
	said := words(edge.Event{State: edge.Refused, Round: 1, Text: "outside of the policy:\nepsilon: 4\nbits: 9"})
	if want := "this device declined round 1: outside of the policy: epsilon: 4; bits: 9"; said != want {
		t.Errorf("%q, want %q", said, want)
	}
}
