package dataset

import (
	"reflect"
	"slices"
	"testing"
)

// Tax numbers and registration ids are added to documents that are else what they were; each
// provider has its own, in some of its documents, and is asked for them there alone.
func TestDocumentIdentifiers(t *testing.T) {
	cfg := DocumentConfig{Seed: 4, Split: "train", Clients: 10, PerClient: 40, Providers: 2}
	plain, err := Documents(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Identifiers = true
	named, err := Documents(cfg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Documents(cfg)
	if err != nil || !reflect.DeepEqual(named, again) {
		t.Error("the same configuration gives another set")
	}
	owner, of := map[string]string{}, map[string]map[string]string{}
	printed, asked := 0, map[string]int{}
	for i, e := range named.Examples {
		before := plain.Examples[i]
		if !slices.Equal(before.Words, e.Words[:len(before.Words)]) || before.Provider != e.Provider {
			t.Fatal("a document changed beyond its identifiers")
		}
		asked[e.Key]++
		for k, b := range e.Boxes {
			if b[0] >= b[2] || b[1] >= b[3] || b[3] > 1000 {
				t.Fatalf("word %q has the box %v", e.Words[k], b)
			}
		}
		if len(e.Words) > len(before.Words) {
			printed++
		}
		if e.Key != "tax number" && e.Key != "registration id" {
			if e.Question != before.Question || !slices.Equal(e.Answers, before.Answers) || e.Key == "" {
				t.Errorf("%+v", e)
			}
			continue
		}
		id := e.Answers[0]
		if !slices.Contains(e.Words[len(before.Words):], id) {
			t.Errorf("%q is asked for and stands nowhere", id)
		}
		if was := owner[id]; was != "" && was != e.Provider {
			t.Errorf("%q is of %s and of %s", id, was, e.Provider)
		}
		owner[id] = e.Provider
		if of[e.Provider] == nil {
			of[e.Provider] = map[string]string{}
		}
		if was := of[e.Provider][e.Key]; was != "" && was != id {
			t.Errorf("%s has the %s %q and %q", e.Provider, e.Key, was, id)
		}
		of[e.Provider][e.Key] = id
	}
	if n := len(named.Examples); printed < n*4/10 || printed > n*6/10 || asked["tax number"] < n/50 || asked["registration id"] < n/50 || len(asked) != 8 {
		t.Errorf("%d of %d documents print identifiers, asked %v", printed, n, asked)
	}
}
