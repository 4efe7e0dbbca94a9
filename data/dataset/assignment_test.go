package dataset

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Every form says the same division, in the order in which clients are named; what is in no
// list, or has an empty client, is nobody's.
func TestPartitionsForms(t *testing.T) {
	want := [][]int{{0, 3}, {1}}
	for name, text := range map[string]string{
		"lists.json":   "[[0, 3], [1]]",
		"object.json":  "{\"z\": [0, 3], \"a\": [1]}",
		"named.csv":    "example,client\n0,z\n3,z\n1,a\n",
		"semi.csv":     "client;example\nz;0\nz;3\na;1\n",
		"rows.csv":     "client,label\nz,x\na,x\n,y\nz,y\n",
		"rows.tsv":     "text\tclient\none \"two\tz\nb\ta\nc\t\nd\tz\n",
		"rows.jsonl":   "{\"client\": \"z\"}\n{\"client\": \"a\"}\n\n{\"client\": \"\"}\n{\"client\": \"z\"}\n",
		"named.ndjson": "{\"client\": 7, \"example\": 0}\n{\"client\": 7, \"example\": 3}\n{\"client\": 8, \"example\": 1}\n",
	} {
		got, err := ReadPartition(strings.NewReader(text), name, 4)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	got, err := ReadPartition(strings.NewReader("[[], [2], []]"), "empty.json", 3)
	if err != nil || len(got) != 3 || len(got[0])+len(got[2]) != 0 {
		t.Errorf("clients without examples: %v, %v", got, err)
	}
}

// What cannot be a partition is refused by what is wrong and what would do.
func TestPartitionsThatAreNone(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"x.json", "[[0, 1], [1]]", "client 1 has example 1, which client 0 has too"},
		{"x.json", `{"a": [0], "b": [0]}`, `client "b" has example 0, which client "a" has too`},
		{"x.json", `{"a": [0], "a": [1]}`, `client "a" occurs twice`},
		{"x.json", "[[0, 4]]", "client 0 has example 4: the data hold 4, which count from 0"},
		{"x.json", "[[-1]]", "client 0 has example -1"},
		{"x.json", "[[0.5]]", `"0.5", want the number of an example`},
		{"x.json", `[["0"]]`, "want the number of an example"},
		{"x.json", "[[99999999999999999999]]", "want the number of an example"},
		{"x.json", "[0, 1]", "want a list of examples"},
		{"x.json", "7", "want a list of lists"},
		{"x.json", "", "unexpected EOF"},
		{"x.json", "[[0], [1", "unexpected EOF"},
		{"x.json", "[[0]] [[1]]", "something follows"},
		{"x.json", "[[], []]", "gives no client an example"},
		{"x.json", "[[0, [1]]]", "want the number of an example"},
		{"x.json", `{"` + strings.Repeat("a", 300) + `": [0]}`, "300 bytes, the limit is 256"},
		{"x.csv", "client,example\na,0\nb,x\n", `line 3: example is "x"`},
		{"x.csv", "text,label\na,b\n", `"client" is missing; there are "text", "label"`},
		{"x.csv", "client\na\nb\n", "names a client in 2 records, and the data hold 4 examples"},
		{"x.jsonl", "{\"client\": \"a\"}\n", "names a client in 1 records"},
		{"x.jsonl", "{\"user\": \"a\"}\n", `"client" is missing; there are "user"`},
		{"x.jsonl", "{\"client\": \"a\", \"example\": 1}\n{\"client\": \"a\"}\n", "stands in some lines"},
		{"x.txt", "0 1", "unknown format"},
	} {
		_, err := ReadPartition(strings.NewReader(c.text), c.name, 4)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s %.40q: %v, want it to say %q", c.name, c.text, err, c.says)
		}
	}
}

// A file that never ends is left before it fills the memory.
func TestPartitionIsBounded(t *testing.T) {
	endless := func(unit string) *repeat { return &repeat{unit: unit} }
	if _, err := ReadPartition(endless("[ ["), "x.json", 1); err == nil {
		t.Error("lists in lists")
	}
	a := assignment{most: 1000, owner: make([]int32, 1), at: map[string]int{}}
	if err := a.readLists(&repeat{head: "[", unit: "[],"}); err == nil || !strings.Contains(err.Error(), "more than 1000 clients") {
		t.Errorf("clients without end: %v", err)
	}
	b := bounded{r: endless("xxxxxxxx"), left: 3, end: errLongPartition}
	buf := make([]byte, 8)
	if n, err := b.Read(buf); n != 3 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	if _, err := b.Read(buf); !errors.Is(err, errLongPartition) {
		t.Errorf("beyond its end: %v", err)
	}
}

// repeat is a head and then a unit again and again.
type repeat struct{ head, unit, left string }

func (r *repeat) Read(p []byte) (int, error) {
	if r.left == "" {
		r.left, r.head = r.head+r.unit, ""
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func FuzzReadPartition(f *testing.F) {
	f.Add("x.json", "[[0,1],[2]]")
	f.Add("x.json", `{"a": [0], "b": []}`)
	f.Add("x.csv", "client,example\na,0\n")
	f.Add("x.csv", "client;x\na;1\nb;2\n;3\n")
	f.Add("x.jsonl", `{"client":"a","example":2}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		const n = 3
		parts, err := ReadPartition(strings.NewReader(text), name, n)
		if err != nil {
			return
		}
		seen := map[int]bool{}
		for _, p := range parts {
			for _, i := range p {
				if i < 0 || i >= n || seen[i] {
					t.Fatalf("%q: example %d is none or another's", text, i)
				}
				seen[i] = true
			}
		}
		if len(seen) == 0 {
			t.Errorf("%q gives nobody anything", text)
		}
	})
}
