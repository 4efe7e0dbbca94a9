package pattern

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// cut are the ends of the parts that a text is cut into at a pattern's matches, in characters.
func cut(t testing.TB, p *Pattern, text string, m *Meter) (spans [][2]int) {
	t.Helper()
	count := func(from, to int) int { return utf8.RuneCountInString(text[from:to]) }
	at, done := 0, 0
	add := func(to int) {
		if to > at {
			n := count(at, to)
			spans = append(spans, [2]int{done, done + n})
			at, done = to, done+n
		}
	}
	for from := 0; from <= len(text); {
		start, end, ok := p.Next(text, from, m)
		if !ok {
			break
		}
		add(start)
		add(end)
		if from = end; end == start {
			_, n := utf8.DecodeRuneInString(text[end:])
			from += max(n, 1)
		}
	}
	add(len(text))
	return spans
}

type cuts []struct {
	Pattern string     `json:"pattern"`
	Texts   []string   `json:"texts"`
	Spans   [][][2]int `json:"spans"`
}

// perByte are steps that matching takes at most for each byte of a text, for published patterns.
const perByte = 64

// Texts are cut as tokenizers 0.23 cuts them, which matches by Oniguruma: at the patterns that
// Llama 3, Qwen, o200k, DeepSeek, GPT-2 and Kimi publish, and at others for each part of the dialect.
// STARLING_CUTS names a file of more.
func TestAsTokenizersDoes(t *testing.T) {
	files := []string{"testdata/cuts.json"}
	if more := os.Getenv("STARLING_CUTS"); more != "" {
		files = append(files, more)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var all cuts
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		texts, most := 0, 0
		for _, c := range all {
			p, err := Parse(c.Pattern)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			bad := 0
			for i, text := range c.Texts {
				m := &Meter{Left: perByte*len(text) + 1024}
				if got := cut(t, p, text, m); !slices.Equal(got, c.Spans[i]) {
					if bad++; bad < 4 {
						t.Errorf("%s: %q is cut at %v, want %v", c.Pattern, text, got, c.Spans[i])
					}
				}
				texts++
				most = max(most, (perByte*len(text)+1024-m.Left)/max(16, len(text)))
			}
		}
		t.Logf("%s: %d texts at %d patterns, at most %d steps a byte", name, texts, len(all), most)
		if len(all) < 30 || texts < 1000 {
			t.Errorf("%d texts at %d patterns", texts, len(all))
		}
	}
}

// Classes have as many characters as tokenizers 0.23 finds in all of Unicode.
func TestTables(t *testing.T) {
	for class, want := range map[string]int{`\p{L}`: 141028, `\p{N}`: 1911, `\s`: 25, `\p{M}`: 2501, `\p{Lu}`: 1858, `\p{P}`: 855, `\p{S}`: 8514,
		`\w`: 144671, `\p{Lm}`: 404, `\p{Lt}`: 31, `\p{Lo}`: 136477, `\p{Ll}`: 2258, `\p{Han}`: 99030, `\d`: 760} {
		p, err := Parse(class)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if (r < 0xd800 || r > 0xdfff) && p.insts[0].set.has(r) {
				got++
			}
		}
		if got != want {
			t.Errorf("%s has %d characters, want %d", class, got, want)
		}
	}
}

// What would take time exponential in a text, or quadratic, ends by its meter.
func TestMeter(t *testing.T) {
	for src, text := range map[string]string{
		`(?:a+)+b`:           strings.Repeat("a", 5000),
		`(?:a|a)+b`:          strings.Repeat("a", 5000),
		`a*b`:                strings.Repeat("a", 50_000),
		`(?:(?=a+)a)+b`:      strings.Repeat("a", 50_000),
		`(?:a{1,1000}){99}b`: strings.Repeat("a", 50_000),
	} {
		p, err := Parse(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		m := &Meter{Left: 1 << 20}
		if _, _, ok := p.Next(text, 0, m); ok || !m.Spent() {
			t.Errorf("%s: %v with %d steps left", src, ok, m.Left)
		}
	}
}

func TestRefused(t *testing.T) {
	for src, want := range map[string]string{
		"(": "unterminated", ")": "none has opened", "[": "unterminated", "[a": "unterminated", `\`: "ends with a backslash", "*": "repeats nothing",
		`\p{Nope}`: "not known", `\pL`: "without braces", `\p{L`: "brace", "(?<name>a)": "a group that begins", `\1`: `escape \1`, `\k`: `escape \k`,
		"a{1001}": "want at most 1000", "(?:a*)*": "may be empty", "(?<=a+)b": "look-behind of 1 to -1", "[b-a]": "a range from", `\x{110000}`: "code point",
		"a{2}+": "that a plus follows", "[[:alpha:]]": "POSIX", "\xff": "not UTF-8", strings.Repeat("(", 200): "deeper than 100",
		strings.Repeat("(?:ab){99}", 200): "more than 20000 instructions", strings.Repeat("a", maxSource+1): "the limit is 16384",
		"(?:(?:(?:a{1000}){1000}){1000}){1000}": "more than 20000 instructions",
	} {
		if _, err := Parse(src); !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", src, err, want)
		}
	}
}

// A general category has Unicode's long name too, however it is written; punct is another set in Oniguruma.
func TestLongNamesOfCategories(t *testing.T) {
	for long, short := range unicode.CategoryAliases {
		if long == "punct" {
			continue
		}
		by, want := property(strings.ReplaceAll(strings.ToUpper(long), "_", " ")), property(short)
		if by == nil || want == nil {
			t.Errorf("%s or %s is not known", long, short)
			continue
		}
		for r := rune(0); r < 0x3000; r++ {
			if by(r) != want(r) {
				t.Errorf("%s and %s differ in %U", long, short, r)
				break
			}
		}
	}
	if property("punct") != nil {
		t.Error("punct is known")
	}
}

// Whatever an expression and a text are, matching ends within its steps, a match lies within the
// text, at characters' ends, and is found again.
func FuzzPattern(f *testing.F) {
	f.Add(`\s+(?!\S)|[^a-z\p{L}]?\p{L}++`, "a  b Ж1")
	f.Add(`(?<=a|b)(?i:c{1,3}?)+$`, "abCc\n")
	f.Add(`[\w&&[^_\d]]*x|\Ab`, "_a1x")
	f.Fuzz(func(t *testing.T, src, text string) {
		p, err := Parse(src)
		if err != nil || !utf8.ValidString(text) {
			return
		}
		const steps = 1 << 16
		meter := &Meter{Left: steps}
		start, end, ok := p.Next(text, 0, meter)
		if !ok {
			return
		}
		if start < 0 || end < start || end > len(text) || !utf8.ValidString(text[start:end]) {
			t.Errorf("%q matches %d..%d of %q", src, start, end, text)
		}
		again, same, ok := p.Next(text, start, &Meter{Left: steps})
		if !ok || again != start || same != end {
			t.Errorf("%q matches %d..%d of %q, then %d..%d", src, start, end, text, again, same)
		}
	})
}

func BenchmarkLlama3(b *testing.B) {
	p, err := Parse(`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`)
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("It's 1234 o'clock, isn't it?\n\nÀ bientôt, world.  ", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		meter := &Meter{Left: perByte * len(text)}
		for at := 0; at < len(text); {
			_, end, ok := p.Next(text, at, meter)
			if !ok {
				b.Fatal("no match")
			}
			at = end
		}
	}
}

// TestEveryStepIsSmall: what one step takes has a bound. A look-behind pays for each character that it walks back, a class
// for each 16 tables, and an expression has room for so many ranges and tables and no more.
func TestEveryStepIsSmall(t *testing.T) {
	const n = 2000 // characters of a text
	for name, c := range map[string]struct {
		src, letter string
		least       int // steps for each character
	}{
		"a long look-behind":   {"(?<=(?:b{1000}){1000})z", "b", n / 4},
		"many tables":          {"[" + strings.Repeat(`\p{Zl}`, 2600) + "]", "é", 2600 / mostTests},
		"many tables, looped":  {"[" + strings.Repeat(`\p{Zl}`, 2600) + `\p{L}]+z`, "é", 2600 / mostTests},
		"nested tables":        {"[" + strings.Repeat("["+strings.Repeat(`\p{Zl}`, 400)+"]", 5) + "]", "é", 2000 / mostTests},
		"tables that all hold": {"[" + strings.Repeat(`\P{Zl}`, 1000) + "&&" + strings.Repeat(`\p{Zl}`, 1000) + "]", "é", 2000 / mostTests},
	} {
		p, err := Parse(c.src)
		if err != nil {
			t.Fatal(name, err)
		}
		text := strings.Repeat(c.letter, n)
		if _, _, ok := p.Next(text, 0, &Meter{Left: c.least * n}); ok {
			t.Errorf("%s: found", name)
		}
		m := &Meter{Left: c.least * n}
		if p.Next(text, 0, m); !m.Spent() {
			t.Errorf("%s: %d steps for %d characters, want %d for each", name, c.least*n-m.Left, n, c.least)
		}
	}
	if _, err := Parse("(?i)[" + strings.Repeat("Ā-ӿ", 2500) + "]"); !errors.Is(err, ErrSyntax) {
		t.Errorf("a class of millions of ranges: %v", err)
	}
}

// A loop of a class stops where the meter ends, and does not read the text to its end before it pays.
func TestLoopsPayAsTheyRead(t *testing.T) {
	p, err := Parse(`a*`)
	if err != nil {
		t.Fatal(err)
	}
	m := &Meter{Left: 100}
	if _, _, ok := p.Next(strings.Repeat("a", 1<<20), 0, m); ok || !m.Spent() {
		t.Errorf("found %v with %d steps left", ok, m.Left)
	}
}
