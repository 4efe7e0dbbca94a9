package jinja

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/leaf/cputime"
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
		got, err = p.Run(t.Context(), vars(t, given), then, Limits{})
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
			_, err = p.Run(t.Context(), nil, then, Limits{})
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
	first, err := p.Run(t.Context(), given, then, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Run(t.Context(), given, then, Limits{}); err != nil || again != first {
		t.Errorf("%q, then %q, %v", first, again, err)
	}
}

// touched are templates whose loop would touch a text of 1 MB, or a long list, 30,000 times by one
// operation: filters, tests, operators, methods and lookups.
var touched = map[string]string{
	"float": "a|float", "float with blanks": "blank|float", "int": "a|int", "int of blanks": "blank|int",
	"length": "é|length", "count": "é|count", "title": "é|title", "upper": "é|upper", "trim": "blank|trim", "strip": "blank.strip()",
	"strip letters": "é[:2000].strip('a' * 2000 ~ 'é')", "in a text": "'b' in a", "in a list": "'b' in many", "not in": "'b' not in a",
	"equal": "a == b", "eq test": "a is eq(b)", "unequal": "a != b", "less": "a < b", "at least": "a >= b", "lists equal": "many == like",
	"item by a long key": "d[a]", "get by a long key": "d.get(a)", "in a mapping": "a in d", "a long key made": "{a: 1}", "dictsort": "d|dictsort",
	"tojson": "d|tojson(sort_keys=true)", "map by a long name": "[1]|map(a)", "select by a long test": "[1]|select(a)", "attributes": "many|map(attribute='x')",
	"map float": "[a, a, a]|map('float')|list", "select": "many|select('none')", "startswith": "a.startswith(b)", "endswith": "a.endswith((b, b))",
	"find": "a.find('b')", "find nothing": "é.find('')", "split": "a.split('b')", "split once": "a.split('b', 1)", "fields": "blank.split()",
	"replace": "a.replace('b', 'c')", "an item": "é[900]", "a last item": "é[-1]", "a slice": "é[1:2]", "join": "many|join", "join method": "''.join(many)",
	"reverse": "many|reverse", "items": "d.items()", "values": "d.values()", "first": "a|first", "list": "a|list", "indent": "lines|indent",
	"string": "many|string", "added": "a + b", "joined": "a ~ b", "many added": "many + many", "strftime": "strftime_now(a)",
	"escape": "a|escape", "markup added": "('x'|safe) + a", "min": "many|min", "max": "[a, b]|max", "sort": "many|sort", "unique": "many|unique", "sum": "many|map('length')|sum",
	"groupby": "[{'k': a}, {'k': b}]|groupby('k')", "batch": "many|batch(1)", "format": "'%s%s'|format(a, b)", "percent": "'%s' % a", "format method": "'{}'.format(a)",
	"a format without places": "a.format()", "wordcount": "é|wordcount", "attr": "d|attr(a)", "rsplit": "a.rsplit('b')", "rsplit once": "a.rsplit('b', 1)",
	"rsplit fields": "blank.rsplit(none, 1)", "splitlines": "lines.splitlines()", "removeprefix": "a.removeprefix(b)", "isdigit": "('1' * 1000000).isdigit()",
	"partition": "a.partition('b')", "rpartition": "a.rpartition('b')", "rfind": "a.rfind('b')", "count text": "a.count('b')", "index of a list": "many.count(a)",
	"ljust": "a.ljust(1000001)", "spread": "dict(**d)", "repeated": "many * 2", "sameas": "a is sameas b", "upper test": "é is upper", "a tuple": "''.join([a, a])",
}

// Nothing that a template does to a long text or list is free: each of these ends by its limits,
// long before the loop does, and within a second of processor time.
func TestEveryTouchIsCharged(t *testing.T) {
	const size = 1 << 20
	long := strings.Repeat("1", size)
	given := map[string]any{"a": long, "b": long[:size-1] + "1", "blank": strings.Repeat(" ", size), "é": strings.Repeat("é", size/2),
		"lines": strings.Repeat("\n", size/2), "d": &Dict{}}
	given["b"] = strings.Clone(given["b"].(string))
	d := given["d"].(*Dict)
	for _, end := range []string{"X", "Y", "Z", "W"} {
		d.Set(long+end, "v")
	}
	var many, like []any
	for range size / 16 {
		many, like = append(many, ""), append(like, "")
	}
	given["many"], given["like"] = List(many...), List(like...)
	for name, expression := range touched {
		p, err := Parse("{% for i in range(30000) %}{% set t = " + expression + " %}{% endfor %}")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		began := cputime.Now()
		if _, err = p.Run(t.Context(), given, then, Limits{Bytes: maxBytes / 4}); !errors.Is(err, ErrLimit) && (err == nil || !strings.Contains(err.Error(), "not known here")) {
			t.Errorf("%s: %v, want a limit", name, err)
		}
		if took := cputime.Now() - began; took > time.Second {
			t.Errorf("%s: %v of processor time", name, took)
		}
	}
}

// A run ends with its context, whether it takes steps or touches long texts.
func TestRunEndsWithContext(t *testing.T) {
	ended, end := context.WithCancelCause(t.Context())
	cause := errors.New("the reader has left")
	end(cause)
	for _, src := range []string{"{% for i in range(2000) %}{{ i }}{% endfor %}", "{{ a | float }}"} {
		p, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(ended, map[string]any{"a": strings.Repeat("1", 1<<20)}, then, Limits{}); !errors.Is(err, cause) || !errors.Is(err, ErrRun) {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// Bounds of the fuzz target, far above what the limits let a template take: about a second on a
// slow machine, and the values of a run with what is left of each for the collector.
const (
	fuzzTime   = 10 * time.Second
	fuzzMemory = 32 * maxBytes
)

// Whatever a template and its values are, they end with a text or an error, and take no more
// processor time and memory than the limits stand for.
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
	for _, expression := range touched { // over a short text here: what is fuzzed may make it long
		f.Add("{% for i in range(99) %}{% set t = "+expression+" %}{% endfor %}", []byte(`{"a": "11", "b": "11", "blank": "  ", "é": "éé", "many": ["", ""], "like": ["", ""], "d": {"11": 1}}`))
	}
	f.Add("{% macro f(a=f()) %}{{ a }}{% endmacro %}{{ f() }}", []byte(`{}`))
	f.Fuzz(func(t *testing.T, src string, given []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := cputime.Now()
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
		out, err := p.Run(t.Context(), m, then, Limits{})
		if took := cputime.Now() - began; took > fuzzTime {
			t.Errorf("%v of processor time", took)
		}
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; made > fuzzMemory {
			t.Errorf("%d bytes allocated", made)
		}
		again, err2 := p.Run(t.Context(), m, then, Limits{})
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
	got, err := p.Run(t.Context(), map[string]any{"v": v}, then, Limits{})
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
