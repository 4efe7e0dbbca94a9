package known

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// The program's own list has the bases that the program has.
func TestDefaultHasTheEmbedded(t *testing.T) {
	for name, open := range map[string]func() (*model.Base, error){"starling/default": base.Default, "starling/documents": base.Documents} {
		b, err := open()
		if err != nil {
			t.Fatal(err)
		}
		sum, err := b.SHA256()
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := Default().Find(sum); !ok || got.Name != name || got.Tokenizer != sha256.Sum256(b.Tokenizer) {
			t.Errorf("%s is %x, tokenizer %x: the list has %v", name, sum, sha256.Sum256(b.Tokenizer), got)
		}
	}
	if text := Default().Text(); text != published {
		t.Errorf("the list is not as it would be written:\n%s", text)
	}
	if _, ok := Default().Find([32]byte{1}); ok {
		t.Error("it has what nobody published")
	}
}

// A list from elsewhere counts where one of the keys that the owner trusts has signed it,
// all of it.
func TestHostileLists(t *testing.T) {
	signer, verifier, err := note.GenerateKey(rand.Reader, "ours")
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := note.GenerateKey(rand.Reader, "theirs")
	if err != nil {
		t.Fatal(err)
	}
	l := List{{Name: "org/name", Revision: "-", Format: FormatNF4, SHA256: [32]byte{7}}}
	signed, err := l.Sign(signer)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Open(signed, other, verifier)
	if err != nil || !slices.Equal(got, l) {
		t.Errorf("%v, %v", got, err)
	}
	for name, c := range map[string]struct {
		signed string
		keys   []string
	}{
		"another's key": {string(signed), []string{other}},
		"no key":        {string(signed), nil},
		"a bent key":    {string(signed), []string{verifier[1:]}},
		"one hash more": {strings.Replace(string(signed), "\n\n", "\n"+strings.Split(string(signed), "\n")[1]+"\n\n", 1), []string{verifier}},
		"unsigned":      {l.Text(), []string{verifier}},
		"too long":      {string(signed) + strings.Repeat("x", MostBytes), []string{verifier}},
	} {
		if _, err := Open([]byte(c.signed), c.keys...); !errors.Is(err, ErrList) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadLines(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"":                                    "line 1",
		"bases\n":                             "line 1",
		header + "\n\n":                       "line 2: 1 words",
		header + "\na - stored " + sum + "\n": "line 2: 4 words",
		header + "\na - f32 " + sum + " " + sum + "\n":                            "format",
		header + "\na\x1b - stored " + sum + " " + sum + "\n":                     "printable",
		header + "\n - stored " + sum + " " + sum + "\n":                          "line 2",
		header + "\na - stored " + strings.ToUpper(sum) + " " + sum + "\n":        "lower case",
		header + "\na - stored " + sum + " " + sum[2:] + "\n":                     "64 hexadecimal",
		header + "\n" + strings.Repeat("a", 201) + " - stored " + sum + " " + sum: "1..200",
	} {
		if _, err := Parse(text); !errors.Is(err, ErrList) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// What is read is what is written, or an error: no line reads as two things.
func FuzzParse(f *testing.F) {
	f.Add(published)
	f.Add(header + "\na - stored\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		if again := l.Text(); again != text && again != text+"\n" {
			t.Errorf("%q is written as %q", text, again)
		}
	})
}
