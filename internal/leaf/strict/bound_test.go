package strict

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// repeated is a text of about n bytes.
func repeated(n int, s string) string { return strings.Repeat(s, max(1, n/len(s))) }

// numbered repeats a text with a number in it.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// laughs are aliases of aliases: n of them stand for wide^n values.
func laughs(n, wide int) string {
	var b strings.Builder
	b.WriteString("k0: &m0 [x]\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "k%d: &m%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*m%d,", i-1), wide), ","))
	}
	return b.String()
}

// bombs are small files that cost a parser much.
func bombs(n int) map[string]string {
	steps := func(n int, key string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat(" ", i) + key)
		}
		return b.String()
	}
	return map[string]string{
		"[":              repeated(n, "["),
		"{":              repeated(n, "{"),
		"{a: ":           repeated(n, "{a: "),
		"[a: ":           repeated(n, "[a: "),
		"a: in a list":   "[" + repeated(n, "a: "),
		"- ":             repeated(n, "- "),
		"? ":             repeated(n, "? "),
		"- ? ":           repeated(n, "- ? "),
		"- a: ":          repeated(n, "- a: "),
		"tags":           repeated(n, "!a "),
		"anchors":        repeated(n, "&a "),
		"steps":          steps(300, "a:\n"),
		"steps of lists": steps(300, "-\n"),
		"documents":      repeated(n, "--- a\n"),
		"empty ones":     repeated(n, "---\n"),
		"keys":           numbered(n, "k%d: 1\n"),
		"keys in a flow": "a: {" + numbered(n, "k%d: 1, ") + "}",
		"anchored keys":  numbered(n, "k%d: &a%[1]d 1\n"),
		"one alias":      "a: &a [1]\nb: [" + repeated(n, "*a,") + "]",
		"laughs":         laughs(12, 8),
		"merges":         "a: &a {b: c}\nd:\n" + repeated(n, "  <<: *a\n"),
		"merged laughs":  "a: &a {b: c}\n" + numbered(500, "l%d: {<<: *a, x: *a, y: *a}\n"),
		"commas":         "[" + repeated(n, ","),
		"closed":         repeated(n, "]"),
		"open and shut":  repeated(n, "[]"),
		"literals":       repeated(n, "|\n"),
		"quotes":         repeated(n, `"`),
		"escapes":        `"` + repeated(n, `\x41`) + `"`,
		"white lines":    repeated(n, " \n"),
		"tabs":           repeated(n, "\t"),
		"directives":     repeated(n, "%YAML 1.2\n---\n"),
		"colons":         repeated(n, ": "),
		"comments":       repeated(n, "# x\n") + "a: b\n",
		"ends":           repeated(n, "...\n"),
		"deep and wide":  repeated(n, strings.Repeat("[", maxDepth-1)+strings.Repeat("]", maxDepth-1)+",\n"),
		"deep aliases":   "a: &a " + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + "\nb: [" + repeated(n, "*a,") + "]",
	}
}

// allocated is what a call takes from the heap in all, whether it is freed or not: what
// is held at any time is less.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestMemoryIsBounded: whatever a file holds, reading it takes from the heap no more than
// this. Before there was a bound, 500 bytes of aliases and 200 kB of brackets took 7.2 GB.
func TestMemoryIsBounded(t *testing.T) {
	const most = 96 << 20
	for _, size := range []int{500, 30_000, MaxBytes - 1<<10, 200_000} {
		for name, bomb := range bombs(size) {
			text := []byte(bomb)
			for _, v := range []any{new(file), new(map[string]any), new(any), new(Pairs)} {
				var err error
				took := allocated(func() { err = Decode(text, v) })
				if took > most {
					t.Errorf("%d bytes of %s into %T: %d MiB, want at most %d (%.80v)", len(text), name, v, took>>20, most>>20, err)
				}
				if len(text) > MaxBytes && took > 1<<20 {
					t.Errorf("%d bytes of %s: %d KiB before they were refused", len(text), name, took>>10)
				}
			}
		}
	}
}

// TestBoundsAreSaid: a refusal names the limit.
func TestBoundsAreSaid(t *testing.T) {
	for text, want := range map[string]string{
		repeated(MaxBytes+1, "a"):                 "131073 bytes, the limit is 131072",
		strings.Repeat("[", maxDepth+1):           "line 1: nested more than 32 deep",
		"a:\n" + strings.Repeat("- ", maxDepth+1): "line 2: nested more than 32 deep",
		"a: 1\n---\nb: 2\n":                       "line 2: a second document",
		laughs(12, 8):                             "aliases expand to more than",
		"a: *b\nb: &b 1\n":                        "line 1: the alias b of nothing before it",
		"a: &x 1\nb: &x 2\n":                      "line 2: a second anchor x",
		numbered(60_000, "k%d: 1\n"):              "more than 2048 keys",
		"a: [" + strings.Repeat("1,", maxTokens):  "words and marks, the limit is",
		"a: &x\n  <<: *x\n":                       "the alias x of nothing before it",
	} {
		var v any
		if err := Decode([]byte(text), &v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %.200v, want %q", text, err, want)
		}
	}
}

// TestAliasesAreRead: what people write with them stays.
func TestAliasesAreRead(t *testing.T) {
	var v map[string]any
	text := "base: &base {a: 1, b: [1, 2]}\none:\n  <<: *base\n  c: 3\ntwo: [*base, *base]\n"
	if err := Decode([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	one, two := v["one"].(map[string]any), v["two"].([]any)
	if fmt.Sprint(one) != "map[a:1 b:[1 2] c:3]" || fmt.Sprint(two[1]) != "map[a:1 b:[1 2]]" {
		t.Errorf("%v", v)
	}
}
