package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// golden is what lab/bench/interop/talks.py wrote.
type golden struct {
	Vars   json.RawMessage `json:"vars"`
	Probes []goldenCase    `json:"probes"`
	Talks  []goldenCase    `json:"talks"`
}

type goldenCase struct {
	Name     string          `json:"name"`
	Template string          `json:"template"`
	Given    json.RawMessage `json:"given"`
	Want     string          `json:"want"`
	Refused  string          `json:"refused"`
}

var then = time.Date(2026, 11, 3, 9, 5, 7, 0, time.UTC)

func vars(t testing.TB, js []byte) map[string]any {
	t.Helper()
	v, err := FromJSON(js)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	d := v.(*Dict)
	for _, k := range d.keys {
		out[k.(string)] = d.values[k]
	}
	return out
}

func check(t *testing.T, c goldenCase, given []byte) {
	t.Helper()
	got := ""
	p, err := Parse(c.Template)
	if err == nil {
		got, err = p.Run(vars(t, given), then, Limits{})
	}
	if got != c.Want || (err != nil) != (c.Refused != "") {
		t.Errorf("%s %.3000q: %q, %v; want %q %s", c.Name, c.Template, got, err, c.Want, c.Refused)
	}
}

// Every probe of the language and every conversation in the templates of SmolLM2, TinyLlama,
// Qwen 2.5 and Qwen 3 comes out as transformers writes it, or is refused where it refuses.
func TestAsTransformersDoes(t *testing.T) {
	files := []string{"testdata/talks.json"}
	if more := os.Getenv("STARLING_TALKS"); more != "" {
		files = append(files, more)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var g golden
		if err := json.Unmarshal(data, &g); err != nil {
			t.Fatal(err)
		}
		if len(g.Probes) < 40 || len(g.Talks) < 100 {
			t.Fatalf("%d probes, %d talks", len(g.Probes), len(g.Talks))
		}
		for _, c := range g.Probes {
			check(t, c, g.Vars)
		}
		written := 0
		for _, c := range g.Talks {
			if c.Template == "" {
				src, err := os.ReadFile("testdata/templates/" + c.Name)
				if err != nil {
					t.Fatal(err)
				}
				c.Template = string(src)
			}
			if c.Refused == "" {
				written++
			}
			check(t, c, c.Given)
		}
		if written < len(g.Talks)/2 {
			t.Errorf("%d of %d talks are refused", len(g.Talks)-written, len(g.Talks))
		}
	}
}

// hostile are templates that would take a machine's time or memory.
var hostile = map[string]string{
	"a loop in a loop":        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
	"a long range":            "{% for i in range(2000000000) %}{% endfor %}",
	"a text times many":       "{{ 'a' * 2000000000 }}",
	"a text that doubles":     "{% set n = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
	"a list that doubles":     "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
	"a macro calls itself":    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
	"two macros, many times":  "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
	"a list within itself":    "{% set n = namespace(s=[]) %}{% for i in range(100000) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s }}",
	"a list within, as JSON":  "{% set n = namespace(s=[]) %}{% for i in range(300) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s | tojson }}",
	"a list of two of itself": "{% set n = namespace(s=['aaaa']) %}{% for i in range(60) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}",
	"compared with its like":  "{% set a = namespace(s=[1], t=[1]) %}{% for i in range(60) %}{% set a.s = [a.s, a.s] %}{% set a.t = [a.t, a.t] %}{% endfor %}{{ a.s == a.t }}",
	"parentheses":             "{{ " + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000) + " }}",
	"signs":                   "{{ " + strings.Repeat("-", 100000) + "1 }}",
	"nots":                    "{{ " + strings.Repeat("not ", 60000) + "1 }}",
	"blocks":                  strings.Repeat("{% if 1 %}", 20000) + strings.Repeat("{% endif %}", 2000),
	"elifs":                   "{% if 0 %}" + strings.Repeat("{% elif 0 %}", 20000) + "{% endif %}",
	"attributes":              "{{ a" + strings.Repeat(".a", 100000) + " }}",
	"a long template":         strings.Repeat("a", maxSource+1),
	"replaced by more":        "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
	"an indent":               "{{ ('\\n' * 1000000) | indent(1000, true, true) }}",
	"a JSON's indent":         "{% set n = namespace(s=1) %}{% for i in range(90) %}{% set n.s = [n.s, 1, 1, 1, 1] %}{% endfor %}{% for i in range(9000) %}{{ n.s | tojson(indent=100) }}{% endfor %}",
	"a number beyond":         "{% set n = namespace(s=9) %}{% for i in range(99) %}{% set n.s = n.s * n.s %}{% endfor %}",
	"texts from lists":        "{% set s = 'x' * 1000000 %}{% for i in range(1000) %}{% set t = s | list %}{% endfor %}",
	"a text looked through":   "{% set s = 'x' * 30000000 %}{% for i in range(100000) %}{% set t = 'y' in s %}{% endfor %}",
}

// A template that would take a machine's time or memory ends with an error, soon.
func TestHostileTemplates(t *testing.T) {
	for name, src := range hostile {
		p, err := Parse(src)
		if err == nil {
			_, err = p.Run(nil, then, Limits{})
		}
		if !errors.Is(err, ErrLimit) && !errors.Is(err, ErrRun) && !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A run changes nothing of what it is given: the same template over the same values again is
// the same text.
func TestRunsDoNotTouch(t *testing.T) {
	given := vars(t, []byte(`{"x": [1, 2], "d": {"a": 1}}`))
	p, err := Parse("{% set x = x + [3] %}{{ x }}{{ d.items() }}{{ x[::-1] }}{{ d.keys() }}{{ x | reverse | list }}")
	if err != nil {
		t.Fatal(err)
	}
	first, err := p.Run(given, then, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Run(given, then, Limits{}); err != nil || again != first {
		t.Errorf("%q, then %q, %v", first, again, err)
	}
}

// Whatever a template and its values are, they end with a text or an error.
func FuzzTemplate(f *testing.F) {
	data, err := os.ReadFile("testdata/talks.json")
	if err != nil {
		f.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		f.Fatal(err)
	}
	for _, c := range g.Probes {
		f.Add(c.Template, []byte(g.Vars))
	}
	f.Add("{% macro f(a=f()) %}{{ a }}{% endmacro %}{{ f() }}", []byte(`{}`))
	f.Fuzz(func(t *testing.T, src string, given []byte) {
		p, err := Parse(src)
		if err != nil {
			return
		}
		v, err := FromJSON(given)
		if err != nil {
			return
		}
		m := map[string]any{"x": v}
		if d, ok := v.(*Dict); ok {
			for _, k := range d.keys {
				m[k.(string)] = d.values[k]
			}
		}
		out, err := p.Run(m, then, Limits{})
		again, err2 := p.Run(m, then, Limits{})
		if out != again || (err == nil) != (err2 == nil) {
			t.Errorf("%q, then %q", out, again)
		}
		if len(out) > maxBytes {
			t.Errorf("%d bytes", len(out))
		}
	})
}

// Numbers and keys of JSON are as Python reads them.
func TestFromJSON(t *testing.T) {
	v, err := FromJSON([]byte(`{"b": 1, "a": [1.0, -2, 1e3, 123456789012345678901], "c": {"z": null, "y": "\ud83d\ude42"}}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse("{{ v }}{{ v | tojson }}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Run(map[string]any{"v": v}, then, Limits{})
	want := `{'b': 1, 'a': [1.0, -2, 1000.0, 1.2345678901234568e+20], 'c': {'z': None, 'y': '🙂'}}{"b": 1, "a": [1.0, -2, 1000.0, 1.2345678901234568e+20], "c": {"z": null, "y": "🙂"}}`
	if err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	for _, bad := range []string{"", "{", `{"a":}`, "1 2", strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		if _, err := FromJSON([]byte(bad)); err == nil {
			t.Errorf("%.20q is read", bad)
		}
	}
	if bytes.Contains([]byte(got), []byte("Undefined")) {
		t.Error(got)
	}
}
