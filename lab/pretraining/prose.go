package pretraining

import (
	"iter"
	"math/rand/v2"
	"strings"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/internal/seeded"
)

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
	all := topics()
	main := &all[rng.IntN(len(all))]
	name := companyName(rng)
	var b strings.Builder
	if rng.IntN(2) == 0 { // a headline
		b.WriteString(name + " " + seeded.Pick(rng, main.verbs) + " " + seeded.Pick(rng, main.nouns) + " ")
	}
	for range 3 + rng.IntN(5) {
		t := main
		if rng.IntN(12) == 0 {
			t = &all[rng.IntN(len(all))]
		}
		for _, w := range sentences[rng.IntN(len(sentences))] {
			b.WriteString(expand(rng, w, t, name))
			b.WriteByte(' ')
		}
	}
	return strings.TrimSpace(b.String())
}

// companyName invents one: a syllable name or a word of the language, and
// what companies are called after.
func companyName(rng *rand.Rand) string {
	var first string
	switch rng.IntN(3) {
	case 0:
		first = seeded.ProperName(rng.Uint64N(1 << 40))
	case 1:
		first = seeded.Pick(rng, places)
	default:
		first = seeded.Pick(rng, companyEnds)
	}
	return first + " " + seeded.Pick(rng, companyEnds) + " " + seeded.Pick(rng, []string{"inc", "corp", "co", "ltd", "plc", "group"})
}

// sentences are patterns of parts of speech; expand turns each part into a
// word. The order of words is English enough for a masked word to follow
// from its neighbours and from the subject.
var sentences = [][]string{
	words(`NAME said it VERB the ADJ NOUN of NUM MEAS PREP CAL`),
	words(`ART ADJ NOUN VERB ADV to NUM MEAS from NUM MEAS`),
	words(`SAYER SAYING the NOUN AUX PLAIN the ADJ NOUN in PLACE`),
	words(`the NOUN and NOUN VERB ADV PREP ART ADJ NOUN CONN the NOUN VERB`),
	words(`NAME NOUN NUM MEAS vs NUM MEAS NOUN NUM MEAS vs NUM MEAS`),
	words(`in PLACE the NOUN of NOUN VERB NUM MEAS in CAL`),
	words(`SAYER SAYING that ADJ NOUN AUX VERB the NOUN CONN LINK AUX PLAIN NOUN`),
	words(`LINK AUX ADV PLAIN ART NOUN PREP the ADJ NOUN PREP PLACE`),
	words(`the company said its NOUN VERB PREP ART NOUN of NUM MEAS a NOUN`),
	words(`PREP CAL the ADJ NOUN AUX be VERB by the NOUN`),
	words(`ART NOUN for the ADJ NOUN VERB to about NUM MEAS a year earlier`),
	words(`LINK NOUN and ADJ NOUN AUX PLAIN the NOUN SAYER SAYING ADV`),
	words(`NAME a ADJ NOUN NOUN VERB NOUN to NAME for NUM MEAS`),
	words(`it said the NOUN will ADV PLAIN NOUN NOUN and NOUN PREP CAL`),
}

func expand(rng *rand.Rand, part string, t *topic, name string) string {
	switch part {
	case "NAME":
		if rng.IntN(3) == 0 {
			return companyName(rng)
		}
		return name
	case "NOUN":
		return seeded.Pick(rng, t.nouns)
	case "VERB":
		return seeded.Pick(rng, t.verbs)
	case "ADJ":
		return seeded.Pick(rng, t.adjectives)
	case "MEAS":
		return seeded.Pick(rng, t.measures)
	case "NUM":
		return number(rng)
	case "ART":
		return seeded.Pick(rng, articles)
	case "PREP":
		return seeded.Pick(rng, preposition)
	case "ADV":
		return seeded.Pick(rng, adverbs)
	case "SAYER":
		return seeded.Pick(rng, sayers)
	case "SAYING":
		return seeded.Pick(rng, saying)
	case "CONN":
		return seeded.Pick(rng, connectors)
	case "AUX":
		return seeded.Pick(rng, auxiliaries)
	case "LINK":
		return seeded.Pick(rng, linkers)
	case "PLAIN":
		return seeded.Pick(rng, verbsPlain)
	case "PLACE":
		return seeded.Pick(rng, places)
	case "CAL":
		return seeded.Pick(rng, calendar)
	default:
		return part
	}
}

// number is often left out, as news texts prepared for classification do.
func number(rng *rand.Rand) string {
	switch rng.IntN(4) {
	case 0:
		return seeded.Pick(rng, linkers[20:40])
	case 1:
		return "some"
	case 2:
		return string(rune('1'+rng.IntN(9))) + "." + string(rune('0'+rng.IntN(10)))
	default:
		return string(rune('1'+rng.IntN(9))) + string(rune('0'+rng.IntN(10)))
	}
}
