package dataset

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestDocuments(t *testing.T) {
	cfg := DocumentConfig{Seed: 3, Split: "train", Clients: 6, PerClient: 30}
	set, err := Documents(cfg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Documents(cfg)
	if err != nil || !reflect.DeepEqual(set, again) {
		t.Error("the same configuration gives another set")
	}
	fewer, err := Documents(DocumentConfig{Seed: 3, Split: "train", Clients: 2, PerClient: 30})
	if err != nil || !reflect.DeepEqual(set.Examples[:60], fewer.Examples) {
		t.Error("a client's documents depend on how many clients there are")
	}
	asked := map[string]bool{}
	owner := map[string]string{}
	for _, e := range set.Examples {
		if len(e.Words) != len(e.Boxes) || len(e.Words) < 15 || len(e.Pixels) != DocumentPatches*DocumentPatch {
			t.Fatalf("%d words, %d boxes, %d pixels", len(e.Words), len(e.Boxes), len(e.Pixels))
		}
		if len(e.Answers) != 1 || !strings.Contains(e.Text, e.Answers[0]) {
			t.Errorf("%q is no part of %q", e.Answers, e.Text)
		}
		for i, b := range e.Boxes {
			if b[0] >= b[2] || b[1] >= b[3] || b[2] > 1000 || b[3] > 1000 {
				t.Fatalf("word %q has the box %v", e.Words[i], b)
			}
		}
		if u := owner[e.Provider]; u != "" && u != e.User {
			t.Errorf("%s sends to %s and %s", e.Provider, u, e.User)
		}
		owner[e.Provider] = e.User
		asked[e.Question] = true
	}
	if len(owner) != 24 || len(asked) < 40 {
		t.Errorf("%d providers, %d ways to ask", len(owner), len(asked))
	}
	for _, bad := range []DocumentConfig{{Split: "public", Clients: 1, PerClient: 1}, {Split: "test", PerClient: 1}, {Split: "test", Clients: 1}} {
		if _, err := Documents(bad); err == nil {
			t.Errorf("%+v", bad)
		}
	}
}

// No two splits share a provider, and public providers have none of theirs and none of
// the wordings that are kept apart; a logo tells providers apart.
func TestDocumentProvidersAreHeldApart(t *testing.T) {
	seen := map[string]string{}
	logos := map[string][]float32{}
	for _, split := range splits {
		set, err := Documents(DocumentConfig{Seed: 1, Split: split, Clients: 20, PerClient: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range set.Examples {
			if s := seen[e.Provider]; s != "" && s != split {
				t.Errorf("%s is in %s and %s", e.Provider, s, split)
			}
			seen[e.Provider], logos[e.Provider] = split, e.Pixels
		}
	}
	for e := range PublicDocuments(1) {
		if s := seen[e.Provider]; s != "" && s != "public" {
			t.Errorf("the public provider %s is in %s", e.Provider, s)
		}
		for _, private := range []string{"Outstanding", "Addressee", "Remit"} {
			if slices.Contains(e.Words, private) {
				t.Errorf("a public document says %s", private)
			}
		}
		if seen[e.Provider] = "public"; len(seen) > 500 {
			break
		}
	}
	for _, k := range documentKeys[:keySender] {
		if len(k.labels) != 20 {
			t.Errorf("%d wordings of %q", len(k.labels), k.asked[0])
		}
	}
	if len(logos) < 100 {
		t.Errorf("%d providers", len(logos))
	}
}
