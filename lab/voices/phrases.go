package voices

import (
	_ "embed" // the lists
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/starling-fl/starling/internal/leaf/strict"
)

// What is said.
const (
	SayWords   = "words"   // one of the words of Speech Commands V1 (Warden 2018), or of a list
	SayDigits  = "digits"  // zero to nine
	SayStrings = "strings" // three to seven digits
	SayIntents = "intents" // what a bank is asked, with the intents of MINDS-14 (Gerz et al. 2021)
)

//go:embed voices.yaml
var listed []byte

// lists are voices.yaml's, read where they are asked for first.
var lists = sync.OnceValue(func() (l struct {
	digits, commands           []string // digits by value, and the words of Speech Commands V1 without them
	intents                    map[string][]string
	accents, variants, heldOut []string // of espeak-ng
}) {
	var file struct {
		Digits   string              `yaml:"digits"`
		Commands string              `yaml:"commands"`
		Intents  map[string][]string `yaml:"intents"`
		Accents  string              `yaml:"accents"`
		Variants string              `yaml:"variants"`
		HeldOut  string              `yaml:"held_out"`
	}
	if err := strict.Decode(listed, &file); err != nil {
		panic(err) // the file is embedded
	}
	l.digits, l.commands, l.intents = strings.Fields(file.Digits), strings.Fields(file.Commands), file.Intents
	l.accents, l.variants, l.heldOut = strings.Fields(file.Accents), strings.Fields(file.Variants), strings.Fields(file.HeldOut)
	return l
})

// utterance is what is said once.
type utterance struct {
	text  string
	label string // "" where it has none
}

// dealer says what a speaker says: it goes through all labels before any comes again.
type dealer struct {
	say    string
	labels []string
	left   []string
}

// newDealer is one of words; no words are those of the kind.
func newDealer(say string, words []string) (*dealer, error) {
	d := &dealer{say: say}
	switch say {
	case SayWords:
		if d.labels = words; len(words) == 0 {
			d.labels = slices.Concat(lists().commands, lists().digits)
		}
	case SayDigits, SayStrings:
		d.labels = lists().digits
	case SayIntents:
		for name := range lists().intents {
			d.labels = append(d.labels, name)
		}
	default:
		return nil, fmt.Errorf("voices: say is %.40q, want %s, %s, %s or %s", say, SayWords, SayDigits, SayStrings, SayIntents)
	}
	if len(words) > 0 && say != SayWords {
		return nil, fmt.Errorf("voices: a list of words is for %s, not for %s", SayWords, say)
	}
	d.labels = slices.Clone(d.labels)
	slices.Sort(d.labels)
	return d, nil
}

func (d *dealer) next(rng *rand.Rand) utterance {
	if len(d.left) == 0 {
		d.left = slices.Clone(d.labels)
		rng.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	switch d.say {
	case SayStrings:
		said := make([]string, 3+rng.IntN(5))
		for i := range said {
			said[i] = lists().digits[rng.IntN(len(lists().digits))]
		}
		return utterance{text: strings.Join(said, " ")}
	case SayIntents:
		label := d.take()
		of := lists().intents[label]
		return utterance{chosen(rng, of[rng.IntN(len(of))]), label}
	}
	word := d.take()
	return utterance{word, word}
}

func (d *dealer) take() string {
	last := d.left[len(d.left)-1]
	d.left = d.left[:len(d.left)-1]
	return last
}

// chosen is a template with one of each {a|b}.
func chosen(rng *rand.Rand, template string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(template, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		choices, after, _ := strings.Cut(rest, "}")
		of := strings.Split(choices, "|")
		out.WriteString(of[rng.IntN(len(of))])
		template = after
	}
}

// CheckWords refuses a list of words that is none: each names a folder and is spoken.
func CheckWords(words []string) error {
	if len(words) < 2 || len(words) > 1000 {
		return fmt.Errorf("voices: %d words, want 2..1000", len(words))
	}
	seen := map[string]bool{}
	for _, w := range words {
		if w == "" || len(w) > 40 || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz'") != "" {
			return fmt.Errorf("voices: the word %.60q: want 1..40 small letters of English", w)
		}
		if seen[w] {
			return fmt.Errorf("voices: the word %q occurs twice in the list", w)
		}
		seen[w] = true
	}
	return nil
}
