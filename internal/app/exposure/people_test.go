package exposure

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

func of(names ...string) *dataset.Set {
	s := &dataset.Set{Name: "file"}
	for i, n := range names {
		user, provider, _ := strings.Cut(n, "/")
		s.Examples = append(s.Examples, dataset.Example{Text: "a text", User: user, Provider: provider, Line: i + 1})
	}
	return s
}

func TestPeople(t *testing.T) {
	p, err := apart(of("u/a", "u/a", "v/b"), of("w/c"), "")
	if err != nil || p.By != ByProvider || !slices.Equal(p.Owner, []string{"a", "a", "b", "c"}) || !slices.Equal(p.Member, []bool{true, true, true, false}) {
		t.Errorf("%+v, %v", p, err)
	}
	if in, out := p.Count(); in != 2 || out != 1 {
		t.Errorf("%d members, %d others", in, out)
	}
	if p, err = apart(of("u/a", "v/b"), of("w/c"), ByUser); err != nil || p.Owner[1] != "v" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = apart(of("u", "v"), of("w"), ""); err != nil || p.By != ByUser {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = apart(of("", ""), of(""), ""); err != nil || p.By != ByExample || len(slices.Compact(slices.Clone(p.Owner))) != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = Among(of("u/a", "u/b", "v/a"), []string{"a"}, ""); err != nil || !slices.Equal(p.Member, []bool{true, false, true}) {
		t.Errorf("%+v, %v", p, err)
	}
	for want, err := range map[string]error{
		"is in both files":  second(apart(of("u/a"), of("v/a"), "")),
		"names no provider": second(apart(of("u/a", "u"), of("v/b"), "")),
		"file:2":            second(Among(of("u/a", "u"), nil, "")),
		"cannot be named":   second(Among(of("", ""), nil, "")),
		"none of the 2 names is a provider of file": second(Among(of("u/a"), []string{"x", "y"}, "")),
		"by \"colour\"": second(apart(of("u/a"), of("v/b"), "colour")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Keys are constant by what the files say, whoever is a member.
func TestConstantKeys(t *testing.T) {
	p := &People{}
	add := func(who, key, answer string, n int) {
		for range n {
			p.add(dataset.Example{Key: key, Answers: []string{answer}}, who, who < "e")
		}
	}
	for _, who := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		add(who, "tax number", who+"-1", 2)
		add(who, "sender", strings.ToUpper(who), 1)
		add(who, "sender", who+" ", 1) // but for case and space
		add(who, "date", "1 May", 1)
		add(who, "date", "2 May"+who, 1)
		add(who, "once", "x", 1)
	}
	add("a", "tax number", "misread", 1)
	if got := p.Constant(); !slices.Equal(got, []string{"sender", "tax number"}) {
		t.Errorf("%q", got)
	}
	add("b", "tax number", "misread", 1)
	if got := p.Constant(); !slices.Equal(got, []string{"sender"}) {
		t.Errorf("%q", got)
	}
	if n := len(slices.DeleteFunc(p.remembered(), func(b bool) bool { return !b })); n != 20 {
		t.Errorf("%d questions are of what is constant", n)
	}
	if (&People{Examples: make([]dataset.Example, 3)}).remembered()[0] != true {
		t.Error("without keys all questions count")
	}
}

func FuzzNames(f *testing.F) {
	f.Add([]byte(`["a","b"]`))
	f.Add([]byte(`null`))
	f.Add([]byte(`[1]`))
	f.Add([]byte(` ["x"] y`))
	f.Fuzz(func(t *testing.T, b []byte) {
		names, err := parseNames(b)
		if err != nil {
			return
		}
		if !slices.IsSorted(names) || slices.Contains(names, "") {
			t.Errorf("%q", names)
		}
		again, err := json.Marshal(names)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) > 0 {
			if twice, err := parseNames(again); err != nil || !slices.Equal(names, twice) {
				t.Errorf("%q became %q, %v", names, twice, err)
			}
		}
	})
}

// A value that members and others have in common is no disclosure, and one of its own no other's.
func TestWhoseAValueIs(t *testing.T) {
	p := &People{}
	for _, e := range []struct {
		who, answer string
		member      bool
	}{{"a", "France", true}, {"a", " GERMANY ", true}, {"b", "Germany", false}, {"c", "Spain", false}} {
		p.add(dataset.Example{Key: "country", Answers: []string{e.answer}}, e.who, e.member)
	}
	v := p.valuesOf("country")
	if len(v.members) != 1 || len(v.others) != 2 {
		t.Fatalf("%+v", v)
	}
	for answer, want := range map[string][2]bool{"france": {true, false}, "germany": {false, false}, "spain": {false, true}, "italy": {}} {
		if member, other := v.whose(answer, p.answersOf("b", "country")); [2]bool{member, other} != want {
			t.Errorf("%s said of b: a member's %v, another other's %v", answer, member, other)
		}
	}
}
