package dataset

import (
	"bytes"
	"compress/gzip"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/realdata"
)

func TestReadFormats(t *testing.T) {
	tabbed := "earn\tnet profit\n\nacq\tbuys unit\r\n"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(tabbed))
	z.Close()
	for name, content := range map[string]string{
		"a.tsv": tabbed, "a.txt": tabbed, "a.txt.gz": zipped.String(),
		"a.jsonl": `{"text":"net profit","label":"earn"}` + "\n" + `{"label":"acq","text":"buys unit"}`,
	} {
		second := 3
		if name == "a.jsonl" {
			second = 2
		}
		want := &Set{Name: name, Labels: []string{"acq", "earn"},
			Examples: []Example{{Text: "net profit", Label: 1, Line: 1}, {Text: "buys unit", Label: 0, Line: second}}}
		got, err := Read(strings.NewReader(content), name)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	users, err := Read(strings.NewReader(`{"text":"a","label":3,"user":"u1"}`+"\n"+`{"text":"b","label":1,"user":7}`), "x.jsonl")
	if err != nil || users.Examples[1].User != "7" || users.Labels[users.Examples[0].Label] != "3" {
		t.Errorf("numbers as labels and users: %+v, %v", users, err)
	}
}

func TestGroups(t *testing.T) {
	s, err := Read(strings.NewReader(`{"text":"a","label":"x","user":"u","provider":"q"}
{"text":"b","label":"y","user":"u"}
{"text":"c","label":"x","provider":12}
{"text":"d","label":"x","user":"v","provider":"q"}`), "g.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	names, parts, err := s.Groups()
	if err != nil || !slices.Equal(names, []string{"12", "q", "u"}) {
		t.Fatalf("groups %q, %v", names, err)
	}
	var texts []string
	for _, p := range parts {
		all := ""
		for _, e := range p.Examples {
			all += e.Text
		}
		texts = append(texts, all)
		if p.Name != s.Name || !slices.Equal(p.Labels, s.Labels) {
			t.Errorf("part %+v", p)
		}
	}
	if !slices.Equal(texts, []string{"c", "ad", "b"}) {
		t.Errorf("texts %q", texts)
	}
	s.Examples = append(s.Examples, Example{Line: 9})
	if _, _, err := s.Groups(); err == nil || !strings.Contains(err.Error(), "g.jsonl:9: names no provider") {
		t.Errorf("an example of nobody: %v", err)
	}
}

// Generated clients have whole providers of their own.
func TestInvoiceProvidersAreOneClients(t *testing.T) {
	s, err := Invoices(InvoiceConfig{Seed: 1, Split: "train", Clients: 20, PerClient: 50, Providers: 5})
	if err != nil {
		t.Fatal(err)
	}
	owner, label := map[string]string{}, map[string]int{}
	for _, e := range s.Examples {
		if other, seen := owner[e.Provider]; seen && (other != e.User || label[e.Provider] != e.Label) {
			t.Fatalf("provider %q bills %s and %s", e.Provider, other, e.User)
		}
		owner[e.Provider], label[e.Provider] = e.User, e.Label
	}
	if len(owner) != 100 {
		t.Errorf("%d providers, want 100", len(owner))
	}
}

func TestReadNamesTheBadLine(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"a.tsv", "earn\tgood\nno tab here\n", "a.tsv:2: no tab"},
		{"a.tsv", "\ttext\n", "a.tsv:1: label is empty"},
		{"a.tsv", "earn\tx\n\n\nearn\t \n", "a.tsv:4: text is empty"},
		{"a.tsv", "earn\t\xff\n", "a.tsv:1: not valid UTF-8"},
		{"a.tsv", strings.Repeat("l", 257) + "\tx\n", "a.tsv:1: label has 257 bytes"},
		{"a.tsv", "earn\tok\nearn\t" + strings.Repeat("x", MaxLine) + "\n", "a.tsv:2: longer than"},
		{"a.jsonl", `{"text":"a"}`, `a.jsonl:1: "label" is missing`},
		{"a.jsonl", `{"label":"a"}`, `a.jsonl:1: "text" is missing`},
		{"a.jsonl", `{"text":"a","label":{"x":1}}`, `a.jsonl:1: "label" must be`},
		{"a.jsonl", `{"text":"a","label":"a","provider":{}}`, `a.jsonl:1: "provider" must be`},
		{"a.jsonl", `{"text":`, "a.jsonl:1: not a JSON object"},
	} {
		_, err := Read(strings.NewReader(c.content), c.name)
		var line *LineError
		if !errors.As(err, &line) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.30q: error %v, want %q", c.content, err, c.want)
		}
	}
	if nameless := (&LineError{Line: 3, Err: ErrEmpty}).Error(); nameless != "line 3: "+ErrEmpty.Error() {
		t.Errorf("without a file: %q", nameless)
	}
	if _, err := Read(strings.NewReader("\n"), "a.tsv"); !errors.Is(err, ErrEmpty) {
		t.Errorf("an empty file gave %v", err)
	}
	if _, err := Read(strings.NewReader("x"), "a.xls"); err == nil || !strings.Contains(err.Error(), `".xls"`) {
		t.Errorf("an unknown format gave %v", err)
	}
}

func TestLoadR8(t *testing.T) {
	path := realdata.Path(t, "r8/R8.train.txt.gz")
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"acq", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade"}; !slices.Equal(s.Labels, want) {
		t.Errorf("labels %q", s.Labels)
	}
	if len(s.Examples) != 5485 {
		t.Errorf("%d examples, want 5485", len(s.Examples))
	}
}

func TestRelabel(t *testing.T) {
	s := &Set{Name: "f.tsv", Labels: []string{"b", "c"}, Examples: []Example{{Label: 0, Line: 1}, {Label: 1, Line: 4}}}
	out, err := s.Relabel([]string{"a", "b", "c"})
	if err != nil || out.Examples[0].Label != 1 || out.Examples[1].Label != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := s.Relabel([]string{"a", "b"}); err == nil || !strings.Contains(err.Error(), `f.tsv:4: label "c" is not one of`) {
		t.Errorf("a label outside the job gave %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("earn\tnet\n"), byte(0))
	f.Add([]byte(`{"text":"a","label":1,"user":"u"}`), byte(1))
	f.Add([]byte("\xef\xbb\xbflabel;text;user\nearn;\"net\nprofit\";u\n"), byte(2))
	f.Add([]byte("label\ttext\nearn\t\"net\n"), byte(3))
	f.Add([]byte("text;label;note, free\nnet;earn;1,5\n"), byte(2))
	f.Fuzz(func(t *testing.T, data []byte, format byte) {
		c := Columns{}
		name := []string{"f.tsv", "f.jsonl", "f.csv", "f.txt"}[format%4]
		if format%4 == 3 {
			c.Text = "text"
		}
		_ = c.Texts(bytes.NewReader(data), name, func(line int, text string) error {
			if line < 1 || len(text) > MaxLine+64<<10 {
				t.Fatalf("line %d has a text of %d bytes", line, len(text))
			}
			return nil
		})
		s, err := c.Read(bytes.NewReader(data), name)
		if err != nil {
			return
		}
		for _, ex := range s.Examples {
			if len(s.Labels) > 0 && (ex.Label < 0 || ex.Label >= len(s.Labels)) || strings.TrimSpace(ex.Text) == "" || ex.Line < 1 {
				t.Fatalf("unusable example %+v", ex)
			}
		}
	})
}
