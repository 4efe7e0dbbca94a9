package calls

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// The same seed gives the same commands; every one comes to a call of one of some sixty
// functions, whose values were spoken; speakers of one split are none of another's.
func TestCalls(t *testing.T) {
	cfg := Config{Seed: 3, Split: "train", Clients: 20, PerClient: 60}
	set, err := Generate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Generate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(set, again) {
		t.Error("the second set is another")
	}
	users, called := map[string]int{}, map[string]bool{}
	for _, e := range set.Examples {
		users[e.User]++
		var call struct {
			Name      string         `json:"name"`
			Arguments map[string]any `json:"arguments"`
		}
		d := json.NewDecoder(strings.NewReader(e.Completion))
		d.UseNumber()
		if err := d.Decode(&call); err != nil {
			t.Fatalf("%q: %v", e.Completion, err)
		}
		called[call.Name] = true
		for name, v := range call.Arguments {
			spoken, isText := v.(string)
			if !isText {
				spoken = v.(json.Number).String()
			}
			if !strings.Contains(e.Prompt, spoken) {
				t.Errorf("%q does not say %s %q", e.Prompt, name, spoken)
			}
		}
	}
	if len(users) != 20 || users["train-0"] != 60 || len(called) < 60 || len(called) != len(functions) {
		t.Errorf("%d speakers, %d functions of %d", len(users), len(called), len(functions))
	}
	for _, bad := range []Config{{Split: "train"}, {Split: "trial", Clients: 1, PerClient: 1}, {Split: "test", Clients: 1}} {
		if _, err := Generate(bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// What is read in public has none of the words that speakers have to themselves, and no name
// of theirs.
func TestPublicCallsHaveNoPrivateWords(t *testing.T) {
	var public strings.Builder
	n := 0
	for e := range Public(3) {
		public.WriteString(" " + e.Prompt + " \n")
		if n++; n == 4000 {
			break
		}
	}
	known := func(list map[string]wording, before, after string) {
		for _, w := range list {
			for _, word := range w.private {
				if strings.Contains(public.String(), before+word+after) {
					t.Errorf("%q is public", word)
				}
			}
			for _, word := range w.public {
				if !strings.Contains(public.String(), before+word+after) {
					t.Errorf("nobody says %q", word)
				}
			}
		}
	}
	known(deeds, " ", " the ")
	known(things, " the ", " ")
	s := newCaller(3, 0, 0)
	for _, name := range s.people {
		if strings.Contains(public.String(), " "+name+" ") {
			t.Errorf("%s is known in public", name)
		}
	}
}

// A base records the version that it was trained on: another text is another version.
func TestCallsVersionPinsTheText(t *testing.T) {
	set, err := Generate(Config{Seed: 1, Split: "test", Clients: 1, PerClient: 2})
	if err != nil {
		t.Fatal(err)
	}
	for e := range Public(1) {
		set.Examples = append(set.Examples, e)
		break
	}
	want := []string{
		`power up the oven 19 mins {"name":"oven_start","arguments":{"minutes":19}}`,
		`please snag the spot come monday at 2 am {"name":"table_book","arguments":{"time":"2 am","day":"monday"}}`,
		`could you remove the timer {"name":"timer_remove","arguments":{}}`,
	}
	for i, e := range set.Examples {
		if got := e.Prompt + " " + e.Completion; got != want[i] {
			t.Errorf("command %d is now %q: want %q, or another Version", i, got, want[i])
		}
	}
}

// Few functions are called where few are asked for, and a command is a conversation that the assistant ends.
func TestFewFunctionsAndTalks(t *testing.T) {
	set, err := Generate(Config{Seed: 3, Split: "train", Clients: 20, PerClient: 20, Functions: 5})
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, e := range set.Examples {
		name, _, _ := strings.Cut(e.Completion, `","arguments`)
		called[name] = true
		talk, err := Talk(e)
		var list []message
		if err == nil {
			err = json.Unmarshal([]byte(talk.Messages), &list)
		}
		if err != nil || len(list) != 3 || list[1] != (message{"user", e.Prompt}) || list[2] != (message{"assistant", e.Completion}) || talk.User != e.User {
			t.Fatalf("%+v: %+v, %v", e, talk, err)
		}
	}
	if len(called) != 5 {
		t.Errorf("%d functions are called", len(called))
	}
	for _, n := range []int{-1, len(functions) + 1} {
		if _, err := Generate(Config{Split: "train", Clients: 1, PerClient: 1, Functions: n}); err == nil {
			t.Errorf("%d functions are taken", n)
		}
	}
}
