// Package known holds lists of published bases by their hashes, so that a device can tell
// a base that everybody has from one that a coordinator has made for it: training on a
// crafted base can write what it reads into an update.
//
// A list is text, signed as a note of golang.org/x/mod/sumdb/note where it comes from
// elsewhere than the program itself. Its first line is "starling bases 1", each other one
//
//	name revision format sha256 tokenizer-sha256
//
// of what is published (a model's name on a hub, or starling/NAME), the commit there ("-":
// it has none), the form in which devices get it (stored, or nf4), the SHA-256 of
// model.Base's blob, and that of the tokenizer within it.
package known

import (
	_ "embed" // the default list
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/note"
)

// A Base is a published base.
type Base struct {
	Name      string
	Revision  string // of the hub's; "-": none
	Format    string // FormatStored or FormatNF4
	SHA256    [32]byte
	Tokenizer [32]byte
}

// Forms of a base.
const (
	FormatStored = "stored"
	FormatNF4    = "nf4"
)

// String returns the base's common name.
func (b Base) String() string {
	s := b.Name
	if b.Revision != "-" {
		s += "@" + b.Revision[:min(12, len(b.Revision))]
	}
	if b.Format != FormatStored {
		s += " (" + b.Format + ")"
	}
	return s
}

// A List lists published bases.
type List []Base

// header is a list's first line.
const header = "starling bases 1"

// Limits on a list.
const (
	MostBytes = 4 << 20
	mostName  = 200 // bytes
)

// ErrList is a list that cannot be read, or that nobody trusted has signed.
var ErrList = errors.New("known: bad list of bases")

//go:embed bases.txt
var published string

// Default is the program's own list: the embedded bases, and published models whose files
// were compared with what others have noted of them.
var Default = sync.OnceValue(func() List {
	l, err := Parse(published)
	if err != nil {
		panic(err) // a test reads it
	}
	return l
})

// Parse reads a list's text, without a signature.
func Parse(text string) (List, error) {
	bad := func(line int, format string, args ...any) error {
		return fmt.Errorf("%w: line %d: %s", ErrList, line, fmt.Sprintf(format, args...))
	}
	if len(text) > MostBytes {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrList, len(text), MostBytes)
	}
	var l List
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if n == 1 {
			if line != header {
				return nil, bad(n, "%.40q, want %q", line, header)
			}
			continue
		}
		words := strings.Split(line, " ")
		if len(words) != 5 {
			return nil, bad(n, "%d words, want name, revision, format, SHA-256 and the tokenizer's", len(words))
		}
		b := Base{Name: words[0], Revision: words[1], Format: words[2]}
		for _, name := range words[:2] {
			if name == "" || len(name) > mostName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
				return nil, bad(n, "name or revision %.40q: want 1..%d printable characters", name, mostName)
			}
		}
		if b.Format != FormatStored && b.Format != FormatNF4 {
			return nil, bad(n, "format %.20q, want %s or %s", b.Format, FormatStored, FormatNF4)
		}
		for i, to := range []*[32]byte{&b.SHA256, &b.Tokenizer} {
			sum, err := hex.DecodeString(words[3+i])
			if err != nil || len(sum) != len(to) || words[3+i] != strings.ToLower(words[3+i]) {
				return nil, bad(n, "%.80q is not 64 hexadecimal digits in lower case", words[3+i])
			}
			copy(to[:], sum)
		}
		l = append(l, b)
	}
	if n == 0 {
		return nil, bad(1, "nothing, want %q", header)
	}
	return l, nil
}

// Text is the list as Parse reads it.
func (l List) Text() string {
	var b strings.Builder
	b.WriteString(header + "\n")
	for _, x := range l {
		fmt.Fprintf(&b, "%s %s %s %x %x\n", x.Name, x.Revision, x.Format, x.SHA256, x.Tokenizer)
	}
	return b.String()
}

// Find is the base of a hash, false where the list has none.
func (l List) Find(sha256 [32]byte) (Base, bool) {
	i := slices.IndexFunc(l, func(b Base) bool { return b.SHA256 == sha256 })
	if i < 0 {
		return Base{}, false
	}
	return l[i], true
}

// Open reads a signed list, which one of the keys must have signed: each as note prints
// verifier keys, name+hash+key.
func Open(signed []byte, keys ...string) (List, error) {
	if len(signed) > MostBytes {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrList, len(signed), MostBytes)
	}
	var verifiers []note.Verifier
	for _, key := range keys {
		v, err := note.NewVerifier(key)
		if err != nil {
			return nil, fmt.Errorf("%w: key %.80q: %w", ErrList, key, err)
		}
		verifiers = append(verifiers, v)
	}
	n, err := note.Open(signed, note.VerifierList(verifiers...))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrList, err)
	}
	return Parse(n.Text)
}

// Sign writes the list as Open reads it. key is a signer's, as note.GenerateKey makes it.
func (l List) Sign(key string) ([]byte, error) {
	signer, err := note.NewSigner(key)
	if err != nil {
		return nil, fmt.Errorf("%w: key: %w", ErrList, err)
	}
	text := l.Text()
	if _, err := Parse(text); err != nil {
		return nil, err
	}
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrList, err)
	}
	return signed, nil
}
