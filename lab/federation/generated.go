package federation

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
)

// Generated sets stand for published ones of the same kind: tables with questions whose
// answer is a cell, tables with statements that are true or not, and invoices.
const (
	Tables     = "tables"
	Statements = "statements"
	Invoices   = "invoices"
)

// GeneratedVersion names what Public and Config.Generated make beside invoices.
const GeneratedVersion = "starling-tables/1 " + dataset.DocumentsVersion

// A generated table has so many rows below its heads at most, so many columns, and is asked
// so many questions.
const (
	mostRows    = 5
	mostColumns = 4
	perTable    = 3
)

var (
	rowKinds = []string{"team", "city", "ship", "player", "river", "film"}
	columns  = []string{"wins", "losses", "points", "length", "depth", "crew", "rank", "price", "weight", "votes", "year", "goals"}
	asked    = []string{"what is the %s of %s?", "%s of %s?", "give the %s of %s"}
	said     = []string{"the %s of %s is %s", "%s of %s : %s", "%[2]s has %[1]s %[3]s"}
)

// name is one of some 600,000 that end as no name of the other split does.
func name(rng *rand.Rand, split uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for range 3 {
		b.WriteByte(consonants[rng.IntN(len(consonants))])
		b.WriteByte(vowels[rng.IntN(len(vowels))])
	}
	b.WriteByte(consonants[2*rng.IntN(len(consonants)/2)+int(split%2)])
	return b.String()
}

// table is a generated one with questions, or statements, about it; public ones share no
// name with others.
func table(rng *rand.Rand, statements, public bool) document {
	split := uint64(0)
	if public {
		split = 1
	}
	rows := [][]string{{rowKinds[rng.IntN(len(rowKinds))]}}
	heads := 1 + rng.IntN(mostColumns)
	for _, i := range rng.Perm(len(columns))[:heads] {
		rows[0] = append(rows[0], columns[i])
	}
	for range 2 + rng.IntN(mostRows-1) {
		row := []string{name(rng, split)}
		for range heads {
			row = append(row, strconv.Itoa(rng.IntN(1000)))
		}
		rows = append(rows, row)
	}
	d := document{source: Tables}
	d.words, d.boxes = layOut("", rows)
	if public {
		d.image = dataset.DrawPage(d.words, d.boxes)
	}
	for range perTable {
		r, c := 1+rng.IntN(len(rows)-1), 1+rng.IntN(heads)
		if !statements {
			d.questions = append(d.questions, question{fmt.Sprintf(asked[rng.IntN(len(asked))], rows[0][c], rows[r][0]), []string{rows[r][c]}})
			continue
		}
		d.source = Statements
		value, answer := rows[r][c], "yes"
		if rng.IntN(2) == 0 { // another cell's, or one of none
			if value = rows[1+rng.IntN(len(rows)-1)][c]; value == rows[r][c] {
				value = strconv.Itoa(1000 + rng.IntN(1000))
			}
			answer = "no"
		}
		d.questions = append(d.questions, question{fmt.Sprintf(said[rng.IntN(len(said))], rows[0][c], rows[r][0], value), []string{answer}})
	}
	return d
}

// generatedSet makes n documents to learn from and a quarter as many to score.
func generatedSet(source string, n int, seed uint64, pages bool) (s set, err error) {
	rng := rand.New(rand.NewPCG(seed, uint64(len(source))<<32))
	make := func(split string, n int) (all []document, err error) {
		if source != Invoices {
			for range n {
				all = append(all, table(rng, source == Statements, false))
			}
			return all, nil
		}
		made, err := dataset.Documents(dataset.DocumentConfig{Seed: seed, Split: split, Clients: n, PerClient: 1, Providers: 1, Pages: pages})
		if err != nil {
			return nil, err
		}
		for _, e := range made.Examples {
			all = append(all, document{Invoices, e.Provider, e.Words, e.Boxes, e.Image, []question{{e.Question, e.Answers}}})
		}
		return all, nil
	}
	if s.train, err = make("train", n); err == nil {
		s.test, err = make("test", max(1, n/4))
	}
	return s, err
}

// Public is an endless sequence of the three kinds in turn, one question a document, of
// names and senders that no generated set has.
func Public(seed uint64) iter.Seq[dataset.Example] {
	return func(yield func(dataset.Example) bool) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for e := range dataset.PublicDocuments(seed) {
			q, s := table(rng, false, true), table(rng, true, true)
			if !yield(e) || !yield(q.examples("")[0]) || !yield(s.examples("")[0]) {
				return
			}
		}
	}
}
