package dataset

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/seeded"
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
		if len(e.Words) != len(e.Boxes) || len(e.Words) < 15 {
			t.Fatalf("%d words, %d boxes", len(e.Words), len(e.Boxes))
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
// the wordings that are kept apart.
func TestDocumentProvidersAreHeldApart(t *testing.T) {
	seen := map[string]string{}
	for _, split := range seeded.Splits {
		set, err := Documents(DocumentConfig{Seed: 1, Split: split, Clients: 20, PerClient: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range set.Examples {
			if s := seen[e.Provider]; s != "" && s != split {
				t.Errorf("%s is in %s and %s", e.Provider, s, split)
			}
			seen[e.Provider] = split
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
}

// The red split is one half of documents of the training split's providers, one half of the test split's, and none of those
// documents that these splits have; a share of seen ones is exact in every client.
func TestProvidersSeenInTraining(t *testing.T) {
	make := func(split string, seen float64) (*Set, DocumentConfig) {
		cfg := DocumentConfig{Seed: 6, Split: split, Clients: 3, PerClient: 20, Providers: 5, Identifiers: true, Seen: seen}
		set, err := Documents(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return set, cfg
	}
	of, texts, numbers := map[string]map[string]string{}, map[string]string{}, map[string]string{}
	for _, split := range []string{"train", "test"} {
		set, _ := make(split, 0)
		of[split] = map[string]string{}
		for _, e := range set.Examples {
			of[split][e.Provider], texts[e.Text] = strings.TrimPrefix(e.User, split), split
			if e.Key == "tax number" {
				numbers[e.Provider] = e.Answers[0]
			}
		}
	}
	same := 0
	for split, share := range map[string]float64{"test": 0.25, "validation": 1, RedSplit: 0} {
		set, cfg := make(split, share)
		if split == RedSplit {
			share = 0.5
		}
		train := cfg
		train.Split, train.Seen = TrainSplit, 0
		training, err := Documents(train)
		if err != nil {
			t.Fatal(err)
		}
		seen := SeenProviders(set, training)
		// Of a smaller training set fewer are members.
		train.Clients, train.PerClient = 1, 2
		if training, err = Documents(train); err != nil {
			t.Fatal(err)
		}
		if few := SeenProviders(set, training); len(few) > 2 || len(few) >= len(seen) {
			t.Errorf("%s: two documents make %d members", split, len(few))
		}
		count := map[string]int{}
		for _, e := range set.Examples {
			owner, known := of["train"][e.Provider]
			if known != slices.Contains(seen, e.Provider) {
				t.Fatalf("%s: %s is among %v", split, e.Provider, seen)
			}
			if known {
				count[e.User]++
				if owner != strings.TrimPrefix(e.User, split) {
					t.Errorf("%s: %s sends to %s, in training to train%s", split, e.Provider, e.User, owner)
				}
			}
			if !known && split == RedSplit && of["test"][e.Provider] == "" {
				t.Errorf("%s: %s is in neither split", split, e.Provider)
			}
			if was := texts[e.Text]; was != "" && was != split {
				t.Errorf("%s: a document of split %s again", split, texts[e.Text])
			}
			if id := numbers[e.Provider]; id != "" && e.Key == "tax number" {
				if same++; e.Answers[0] != id {
					t.Errorf("%s: %s has the tax number %s, was %s", split, e.Provider, e.Answers[0], id)
				}
			}
		}
		for user, n := range count {
			if float64(n) != 20*share {
				t.Errorf("%s has %d of 20 documents of seen providers, want %v of all", user, n, share)
			}
		}
		if len(count) != 3 {
			t.Errorf("%s: %v", split, count)
		}
	}
	if same == 0 {
		t.Error("no provider was asked for its tax number twice")
	}
	for _, bad := range []DocumentConfig{{Split: "train", Seen: 0.1}, {Split: RedSplit, Seen: 0.1}, {Split: "test", Seen: 1.1}, {Split: "test", Seen: -1},
		{Split: "test", Sheets: MaxSheets + 1}, {Split: "test", Sheets: -1}, {Split: "test", Asked: map[string]int{"iban": 1}},
		{Split: "test", Asked: map[string]int{"tax number": 1}}, {Split: "test", Asked: map[string]int{"total": -1}}} {
		bad.Clients, bad.PerClient = 1, 1
		if _, err := Documents(bad); err == nil {
			t.Errorf("%+v", bad)
		}
	}
}

// Each page of a document has the sender's name, keys of its own, and a question that it answers; all of them together have
// every key once.
func TestDocumentsOfSeveralPages(t *testing.T) {
	set, err := Documents(DocumentConfig{Seed: 8, Split: "train", Clients: 2, PerClient: 60, Sheets: 4, Identifiers: true})
	if err != nil {
		t.Fatal(err)
	}
	sheets, asked := map[string]int{}, map[string]int{}
	for i, e := range set.Examples {
		mark := ""
		if last := e.Words[len(e.Words)-1]; len(last) == 3 && last[1] == '/' {
			mark = last
		}
		sheets[mark]++
		asked[e.Key]++
		if !strings.Contains(e.Text, e.Answers[0]) {
			t.Errorf("%q is no part of page %s, %q", e.Answers, mark, e.Text)
		}
		if first := mark == "" || mark[0] == '1'; !first && set.Examples[i-1].Provider != e.Provider {
			t.Errorf("page %s of another sender than the one before", mark)
		}
		for _, b := range e.Boxes {
			if b[0] >= b[2] || b[1] >= b[3] || b[3] > 1000 {
				t.Fatalf("box %v", b)
			}
		}
	}
	for n := range 3 {
		for k := 2; k <= n+2; k++ {
			if a, b := sheets[fmt.Sprintf("1/%d", n+2)], sheets[fmt.Sprintf("%d/%d", k, n+2)]; a == 0 || a != b {
				t.Errorf("of %d documents of %d pages %d have page %d", a, n+2, b, k)
			}
		}
	}
	if sheets[""] == 0 || len(asked) != 8 {
		t.Errorf("%v, asked %v", sheets, asked)
	}
}

// Keys are asked for as often as is said, where a page has them.
func TestKeysAskedInProportion(t *testing.T) {
	cfg := DocumentConfig{Seed: 8, Split: "train", Clients: 4, PerClient: 250, Identifiers: true, Asked: map[string]int{"sender": 3, "total": 1}}
	set, err := Documents(cfg)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	for _, e := range set.Examples {
		asked[e.Key]++
	}
	// 750 of 1000 expected; beyond 60 of them once in 10,000 seeds.
	if n := asked["sender"]; len(asked) != 2 || len(set.Examples) != 1000 || n < 690 || n > 810 {
		t.Errorf("asked %v", asked)
	}
	cfg.Asked = map[string]int{"tax number": 1}
	if set, err = Documents(cfg); err != nil || len(set.Examples) < 400 || len(set.Examples) > 600 {
		t.Errorf("%d of 1000 documents print a tax number: %v", len(set.Examples), err)
	}
	cfg.Asked = map[string]int{"total": 0}
	if _, err := Documents(cfg); err == nil {
		t.Error("nothing is asked for")
	}
}
