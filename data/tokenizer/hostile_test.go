package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A device takes its job's tokenizer from the coordinator, and encodes its owner's texts
// with it before the first round: what that costs must follow from their length, whatever
// is in them, or its time would tell a word.

// charsmapOf is the blob of a map: a double array with 256 units for each prefix.
func charsmapOf(rules map[string]string) []byte {
	units, base := make([]uint32, 1, 4096), map[string]uint32{}
	open := func(prefix string) uint32 {
		b, known := base[prefix]
		if !known {
			b = uint32(len(units)+255) &^ 255
			units = append(units, make([]uint32, int(b)+256-len(units))...)
			base[prefix] = b
		}
		return b
	}
	units[0] = open("") << 10
	var values []byte
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		for i := range len(key) {
			at := open(key[:i]) + uint32(key[i])
			next := open(key[:i+1])
			units[at] = units[at]&(1<<8) | uint32(key[i]) | (at^next)<<10
			if i == len(key)-1 {
				units[at] |= 1 << 8
				units[next] = uint32(len(values)) | 1<<31
			}
		}
		values = append(append(values, rules[key]...), 0)
	}
	return blobOf(units, values)
}

func blobOf(units []uint32, values []byte) []byte {
	blob := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		blob = binary.LittleEndian.AppendUint32(blob, u)
	}
	return append(blob, values...)
}

// precompiled is a step of a normalizer.
func precompiled(blob []byte) string {
	return `{"type":"Precompiled","precompiled_charsmap":"` + base64.StdEncoding.EncodeToString(blob) + `"}`
}

// normalizing is a small Unigram model with steps before it.
func normalizing(vocab string, steps ...string) []byte {
	return []byte(strings.Replace(string(unigramFile(vocab)), `"normalizer":null`,
		`"normalizer":{"type":"Sequence","normalizers":[`+strings.Join(steps, ",")+`]}`, 1))
}

// inSentencePiece is a small file of SentencePiece's with rules.
func inSentencePiece(blob []byte) []byte {
	spec := append(binary.AppendUvarint([]byte{0x12}, uint64(len(blob))), blob...)
	return append(binary.AppendUvarint(append(smallFile(), 0x1a), uint64(len(spec))), spec...)
}

// A rule puts 18 characters for one at most, as NFKC does for U+FDFA, and there is one map
// of rules: more of either unfolds a character by the thousand.
func TestHostileRulesAreRefused(t *testing.T) {
	longest := charsmapOf(map[string]string{"ß": strings.Repeat("𐍈", 18)})
	longer := charsmapOf(map[string]string{"ß": strings.Repeat("s", 19), "a": "b"})
	for name, file := range map[string][]byte{
		"a rule of 19 characters":                   normalizing(`["a",-1]`, precompiled(longer)),
		"a rule of 19 in a file of SentencePiece's": inSentencePiece(longer),
		"a second map":                              normalizing(`["a",-1]`, precompiled(longest), precompiled(longest)),
	} {
		if _, err := Parse(file); !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), "recompiled") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, file := range [][]byte{normalizing(`["a",-1]`, precompiled(longest)), inSentencePiece(longest)} {
		tok, err := Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.(*Unigram).normalized("ß"); !strings.Contains(got, strings.Repeat("𐍈", 18)) {
			t.Errorf("18 characters became %q", got)
		}
	}
}

// normalized is what a text is covered as.
func (t *Unigram) normalized(text string) string {
	var b strings.Builder
	t.parts.parts(text, func(part []byte) bool { b.Write(part); return true })
	return b.String()
}

// Rules that each are allowed do not add up to more than a text may become.
func TestHostileStepsAreBounded(t *testing.T) {
	rules := map[string]string{" ": strings.Repeat(" \u3000", 9)}
	for c := 'a'; c <= 'z'; c++ {
		rules[string(c)] = strings.Repeat("𐍈", 18)
	}
	blob := charsmapOf(rules)
	text := strings.Repeat("some words of a text ", 500)
	for name, file := range map[string][]byte{
		"tokenizer.json": normalizing(`["a",-1]`, precompiled(blob), `{"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"}`),
		"SentencePiece":  inSentencePiece(blob),
	} {
		tok, err := Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		// Each space of what it becomes takes three bytes as a sign.
		if got, most := len(tok.(*Unigram).normalized(text)), 3*(maxGrowth*len(text)+growthFloor); got > most {
			t.Errorf("%s: %d bytes became %d, want at most %d", name, len(text), got, most)
		}
		if got, most := taken(func() { tok.Encode(text) }), uint64(300*len(text)); got > most {
			t.Errorf("%s: %d bytes took %d from the heap, want at most %d", name, len(text), got, most)
		}
	}
}

// taken is what a call takes from the heap.
func taken(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A map whose trie leads back into itself matches on and on.
func TestHostileTrieEnds(t *testing.T) {
	units := make([]uint32, 512)
	units[0] = 256 << 10
	for c := uint32(1); c < 128; c++ { // every letter leads to where letters are looked for, and ends a rule
		units[256+c] = c | 1<<8 | c<<10
	}
	units[256] = 1 << 31
	m, err := parseCharsmap(blobOf(units, []byte("x\x00")))
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	text := strings.Repeat("a text ", 1000)
	for rest := text; rest != ""; rest = rest[1:] {
		m.matches(rest, func(int, int) bool { steps++; return true })
	}
	if steps < len(text) {
		t.Fatalf("%d steps: the trie does not lead back", steps)
	}
	if most := maxRuleKey * len(text); steps > most {
		t.Errorf("%d steps for %d bytes, want at most %d", steps, len(text), most)
	}
}

// What begins at one place of a text is tried piece by piece: neither may be long.
func TestHostilePiecesAreRefused(t *testing.T) {
	var chain []string
	for n := 1; n <= maxNested+1; n++ {
		chain = append(chain, fmt.Sprintf(`["%s",-%d]`, strings.Repeat("a", n), n))
	}
	if _, err := Parse(unigramFile(strings.Join(chain[:maxNested], ","))); err != nil {
		t.Errorf("%d pieces that begin one another: %v", maxNested, err)
	}
	for name, file := range map[string][]byte{
		"pieces that begin one another": unigramFile(strings.Join(chain, ",")),
		"a long piece":                  unigramFile(`["` + strings.Repeat("a", maxUnigram+1) + `",-1]`),
	} {
		if _, err := Parse(file); !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), "limit is") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of a long text no more is read than fills the sequence, with the ids that the whole of it
// would have given.
func TestLongTextsAreCut(t *testing.T) {
	rules := precompiled(charsmapOf(map[string]string{"\u3000": " ", "ß": "ss", "\t": " ", "\u0301": ""}))
	toks := map[string]Tokenizer{"WordPiece": small(t), "BytePair": bytePairOf(t, "a b", "ab c")}
	for name, file := range map[string][]byte{
		"Unigram":         unigramFile(alphabet()),
		"with rules":      normalizing(alphabet(), rules, `{"type":"Strip","strip_left":true,"strip_right":true}`, `{"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"}`),
		"by white space":  []byte(strings.Replace(string(normalizing(alphabet(), rules)), `"pre_tokenizer":{`, `"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{`, 1)),
		"as a whole":      smallFile(),
		"not plain rules": normalizing(alphabet(), precompiled(charsmapOf(map[string]string{"a": " ", "t": ""})), `{"type":"Strip","strip_left":true,"strip_right":true}`),
	} {
		if name == "by white space" {
			file = []byte(strings.Replace(string(file), `"add_prefix_space":true}`, `"add_prefix_space":true}]}`, 1))
		}
		tok, err := Parse(file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		toks[name] = tok
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	words := []string{"fox", "the", "a", "ta", "quick", "brown", "jumps", "over", "lazy", "dogs", " ", "  ", "\t", "ß", "e\u0301", "\u3000", "日本", "ﷺ", "\xff", "né", ",", "at 1", "\u0600a", "\u0301"}
	for name, tok := range toks {
		for range 300 {
			var b strings.Builder
			for size := rnd.IntN(4000); b.Len() < size; {
				b.WriteString(words[rnd.IntN(len(words))])
				if rnd.IntN(3) > 0 {
					b.WriteByte(' ')
				}
			}
			seq := 2 + rnd.IntN(600)
			whole, got := tok.EncodeFixed(b.String(), 1<<16), tok.EncodeFixed(b.String(), seq)
			all := atOnce(tok, b.String())
			n := len(all)
			before := slices.Index(whole, append(all, -1)[0])
			if n == 0 {
				continue
			}
			for i := range min(n, seq-2) {
				if got[before+i] != all[i] {
					t.Fatalf("%s: id %d of %q is %d of %d, %d alone", name, i, b.String(), all[i], n, got[before+i])
				}
			}
			if !slices.Equal(whole[before:before+n], all) {
				t.Fatalf("%s: %q differs framed", name, b.String())
			}
		}
		if name == "as a whole" || name == "not plain rules" { // what they come to hangs together: linear, that is all
			continue
		}
		long := strings.Repeat("some words of a text ", 1<<17)
		if got := taken(func() { tok.EncodeFixed(long, 64) }); got > 1<<17 {
			t.Errorf("%s: %d bytes took %d from the heap for 64 ids", name, len(long), got)
		}
	}
}

// atOnce encodes a text without cutting it.
func atOnce(tok Tokenizer, text string) (ids []int32) {
	switch t := tok.(type) {
	case *WordPiece:
		splitWords(t.fold.apply(text), t.fold, func(word string) bool { ids = t.appendWord(ids, word); return true })
		return ids
	case *Unigram:
		if m, ok := t.parts.(*metaspace); ok {
			m.chunk("", text, func(part []byte) bool {
				ids = t.cover(ids, part, make([]best, len(part)+1))
				return true
			})
			return ids
		}
	}
	return tok.Encode(text)
}

// What the steps before a model are together is bounded, whatever each of them is.
func TestStepsAreBounded(t *testing.T) {
	double := func(text string) string { return text + text + "é" }
	for n, text := range []string{"", "a", "日本", strings.Repeat("x", 1000)} {
		if got := (steps{double}).apply(text); got != double(text) {
			t.Errorf("text %d: one step gives %q", n, got)
		}
		got := (steps{double, double, double, double, double, double}).apply(text)
		if len(got) > grown(text) || len(got) < grown(text)-3 || strings.ToValidUTF8(got, "") != got {
			t.Errorf("text %d of %d bytes became %d, want about %d whole characters", n, len(text), len(got), grown(text))
		}
	}
}

// FuzzHostileTokenizer: whatever can be loaded encodes within the bounds.
func FuzzHostileTokenizer(f *testing.F) {
	f.Add(charsmapOf(map[string]string{"ß": "ss"}), "Straße ß")
	f.Add([]byte{8, 0, 0, 0, 0, 4, 0, 0, 'a', 1, 0, 0, 'b', 0}, "aab")
	f.Fuzz(func(t *testing.T, blob []byte, text string) {
		for _, file := range [][]byte{normalizing(alphabet(), precompiled(blob), `{"type":"Strip","strip_left":true}`), inSentencePiece(blob)} {
			tok, err := Parse(file)
			if err != nil {
				continue
			}
			if got, most := len(tok.(*Unigram).normalized(text)), 3*(maxGrowth*len(text)+growthFloor+4*maxRule); got > most {
				t.Errorf("%d bytes became %d", len(text), got)
			}
			all, some := tok.Encode(text), tok.EncodeFixed(text, 8)
			for i := range min(len(all), 6) {
				if !slices.Contains(some, all[i]) {
					t.Errorf("id %d is not among %v", all[i], some)
				}
			}
		}
	})
}

// A token that a file adds may be white space itself and take in what follows or comes before:
// a run of it is gone over once, not once for each of its characters, which for this text would
// take longer than any test may.
func TestHostileWhiteSpaceIsReadOnce(t *testing.T) {
	const n = 1 << 21
	for _, strip := range []string{`"rstrip":true`, `"lstrip":true`, `"lstrip":true,"rstrip":true`} {
		file := strings.Replace(string(bytePairJSON()), `"added_tokens":[`, `"added_tokens":[{"id":260,"content":" ",`+strip+`,"special":false},`, 1)
		tok, err := Parse([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		ids := tok.Encode("a" + strings.Repeat(" ", n) + "b")
		if len(ids) != n+2 || ids[1] != 260 || ids[n] != 260 {
			t.Errorf("%s: %d spaces became %d ids", strip, n, len(ids))
		}
	}
}
