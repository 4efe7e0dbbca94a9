package generation

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// reads reports whether an object is whole with the last byte of a text, and how many bytes of it may come.
func reads(text string) (whole bool, read int) {
	var o object
	for i := range len(text) {
		if !o.take([]byte{text[i]}) {
			return false, i
		}
	}
	return o.whole(), len(text)
}

var objects = []string{
	`{}`, `{ }`, ` {}`, `{"a":1}`, `{"a" : [ 1 , -2.5e+7, 0, -0.1E-3, 1e9, true,false , null, "x\u00e9\n", [], {}, [[1]]]}`,
	`{"a":{"b":{"c":"\\\""}}, "d":"é"}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":+1}`, `{"a":.5}`, `{"a":1e}`, `{"a":1e+}`, `{a:1}`, `{"a" 1}`, `{"a":}`,
	`{"a":1,}`, `{,}`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1}`, `{"a":{"b":1]}`, `{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":tru}`, `{"a":nulll}`,
	`{"a":1 2}`, `{"a":"b" "c"}`, `[1]`, `1`, `"a"`, `null`, ``, `{`, `{"a":1`, `{"a":1}}`, `{"a":0 }`, `{"a":1.5 , "b":2}`, `{"a":t rue}`, `{"a":1 .5}`, `{"a":- 1}`,
}

// What is read as a whole object is one, and what is none is not: as encoding/json has it.
func TestObjects(t *testing.T) {
	for _, text := range objects {
		want := json.Valid([]byte(text)) && strings.HasPrefix(text, "{")
		if whole, n := reads(strings.TrimRight(text, " ")); whole != want {
			t.Errorf("%s: whole is %v behind %d bytes, want %v", text, whole, n, want)
		}
	}
	if whole, _ := reads(`{"a":` + strings.Repeat("[", deepest-1) + strings.Repeat("]", deepest-1) + "}"); !whole {
		t.Error("the deepest is refused")
	}
	if _, n := reads(`{"a":` + strings.Repeat("[", deepest)); n != len(`{"a":`)+deepest-1 {
		t.Errorf("%d bytes were read of what is too deep", n)
	}
	if _, n := reads("{" + strings.Repeat(" ", 100)); n != 1+mostSpaces {
		t.Errorf("%d bytes were read of white space", n)
	}
}

// Every beginning of an object that is whole may be written, and can still end: some byte may come.
func FuzzObject(f *testing.F) {
	for _, text := range objects {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		whole, n := reads(text)
		valid := json.Valid([]byte(text)) && strings.HasPrefix(text, "{")
		if whole && !valid {
			t.Fatalf("%q is no object", text)
		}
		// What is refused of an object is too deep, or has too much white space.
		plain := strings.Count(text, "{")+strings.Count(text, "[") < deepest && len(text) == len(strings.Join(strings.Fields(text), ""))
		if valid && !whole && plain {
			t.Fatalf("of the object %q %d bytes are read", text, n)
		}
		var o object
		if o.take([]byte(text[:n])) && !o.whole() {
			some := false
			for b := range 256 {
				then := o
				some = some || then.take([]byte{byte(b)})
			}
			if !some {
				t.Fatalf("nothing may come behind %q", text[:n])
			}
		}
	})
}

// Tokens are taken whole or not at all, and those without text, as a special one's, never come.
func TestObjectMask(t *testing.T) {
	vocabulary := [][]byte{[]byte(`{"`), []byte(`{a`), nil, []byte(` {`), []byte(`{}`), []byte(`{} x`)}
	scores := []float32{1, 2, 3, 4, 5, 6}
	if !(&object{}).mask(scores, vocabulary) {
		t.Error("no token may come")
	}
	for id, may := range []bool{true, false, false, false, true, false} {
		if got := !math.IsInf(float64(scores[id]), -1); got != may {
			t.Errorf("token %q may come: %v, want %v", vocabulary[id], got, may)
		}
	}
	if (&object{}).mask(scores[:1], [][]byte{[]byte("x")}) {
		t.Error("a vocabulary without { begins an object")
	}
}
