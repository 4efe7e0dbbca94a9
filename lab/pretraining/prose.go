package pretraining

import (
	_ "embed" // the words
	"iter"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/leaf/seeded"
	"github.com/starling-fl/starling/internal/leaf/strict"
)

//go:embed prose.yaml
var proseFile []byte

// words are lists by part of speech.
type words map[string][]string

// prose is what prose.yaml holds. It is read where it is asked for first: most programs that link it make no prose.
var prose = sync.OnceValue(func() (p struct {
	sentences [][]string
	topics    []words
	common    words
}) {
	var file struct {
		Sentences []string            `yaml:"sentences"`
		Topics    []map[string]string `yaml:"topics"`
		Common    map[string]string   `yaml:"common"`
	}
	if err := strict.Decode(proseFile, &file); err != nil {
		panic(err) // the file is embedded
	}
	split := func(lists map[string]string) words {
		w := words{}
		for part, list := range lists {
			w[part] = strings.Fields(list)
		}
		return w
	}
	for _, s := range file.Sentences {
		p.sentences = append(p.sentences, strings.Fields(s))
	}
	for _, t := range file.Topics {
		p.topics = append(p.topics, split(t))
	}
	p.common = split(file.Common)
	return p
})

// PublicCorpus yields documents to pretrain a base on: lines of invoices of
// public providers and of plain business prose, in turn. Nothing in it comes
// from a private provider or from a data set; all of it follows from the seed.
func PublicCorpus(seed uint64, lines int) iter.Seq[string] {
	return func(yield func(string) bool) {
		nextInvoice, stop := iter.Pull(dataset.PublicInvoices(seed))
		defer stop()
		rng := seeded.Source(seed, 0x17)
		for i := range lines {
			var line string
			// Prose has the larger vocabulary, so it gets two lines of three.
			if i%3 == 0 {
				line, _ = nextInvoice()
			} else {
				line = article(rng)
			}
			if !yield(line) {
				return
			}
		}
	}
}

// article writes some sentences about one topic, with the odd word of another.
func article(rng *rand.Rand) string {
	p := prose()
	main := seeded.Pick(rng, p.topics)
	name := companyName(rng, p.common)
	var b strings.Builder
	if rng.IntN(2) == 0 { // a headline
		b.WriteString(name + " " + seeded.Pick(rng, main["VERB"]) + " " + seeded.Pick(rng, main["NOUN"]) + " ")
	}
	for range 3 + rng.IntN(5) {
		topic := main
		if rng.IntN(12) == 0 {
			topic = seeded.Pick(rng, p.topics)
		}
		for _, part := range seeded.Pick(rng, p.sentences) {
			b.WriteString(expand(rng, part, topic, p.common, name))
			b.WriteByte(' ')
		}
	}
	return strings.TrimSpace(b.String())
}

// companyName invents one: a syllable name or a word of the language, and
// what companies are called after.
func companyName(rng *rand.Rand, common words) string {
	var first string
	switch rng.IntN(3) {
	case 0:
		first = seeded.ProperName(rng.Uint64N(1 << 40))
	case 1:
		first = seeded.Pick(rng, common["PLACE"])
	default:
		first = seeded.Pick(rng, common["COMPANY"])
	}
	return first + " " + seeded.Pick(rng, common["COMPANY"]) + " " + seeded.Pick(rng, []string{"inc", "corp", "co", "ltd", "plc", "group"})
}

// expand turns a part of speech into a word, and leaves a word as it is.
func expand(rng *rand.Rand, part string, topic, common words, name string) string {
	switch part {
	case "NAME":
		if rng.IntN(3) == 0 {
			return companyName(rng, common)
		}
		return name
	case "NUM":
		return number(rng, common["LINK"][20:40])
	}
	for _, lists := range []words{topic, common} {
		if list, ok := lists[part]; ok {
			return seeded.Pick(rng, list)
		}
	}
	return part
}

// number is often left out, as news texts prepared for classification do.
func number(rng *rand.Rand, spelled []string) string {
	switch rng.IntN(4) {
	case 0:
		return seeded.Pick(rng, spelled)
	case 1:
		return "some"
	case 2:
		return string(rune('1'+rng.IntN(9))) + "." + string(rune('0'+rng.IntN(10)))
	default:
		return string(rune('1'+rng.IntN(9))) + string(rune('0'+rng.IntN(10)))
	}
}
