package federation

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/starling-fl/starling/data/dataset"
)

// ErrConfig is a federation that cannot be put together.
var ErrConfig = errors.New("federation")

// Config says which sets there are and among how many clients each is dealt out.
type Config struct {
	WikiTables, TabFact, Receipts string // folders; "": without it
	Clients                       [3]int // of each set, in that order; 0 only without it
	Seed                          uint64 // of the deal
	Documents                     int    // the most of each set that are learnt from; 0: all
	TestDocuments                 int    // the most of each set that are scored; 0: all
	// Generated makes so many documents of each set instead, and a quarter as many to score:
	// tables with questions, tables with statements, and invoices. No folder is named then.
	Generated int
	Pages     bool // each document with a picture: words where they stand, and of generated invoices the logo
}

// Federation is a federation of document sets.
type Federation struct {
	// Train holds the clients' questions, and after them those of one document in ten that no client holds, on
	// which validation chooses.
	Train *dataset.Set
	Test  *dataset.Set
	// Clients are each client's questions, as indices into Train; Names say whose.
	Clients [][]int
	Names   []string
}

// Sources are the names of the sets, in the order of Config.Clients.
func (c Config) Sources() [3]string {
	if c.Generated > 0 {
		return [3]string{Tables, Statements, Invoices}
	}
	return [3]string{WikiTables, TabFact, Receipts}
}

// maxGenerated bounds the documents of a generated set.
const maxGenerated = 100_000

// New reads, or makes, the sets and deals the documents of each out, in equal numbers and at random.
func New(c Config) (*Federation, error) {
	f := &Federation{Train: &dataset.Set{Name: "train"}, Test: &dataset.Set{Name: "test"}}
	var held []document
	if c.Generated < 0 || c.Generated > maxGenerated || c.Generated > 0 && c.WikiTables+c.TabFact+c.Receipts != "" {
		return nil, fmt.Errorf("%w: %d generated documents of each set: want 1 to %d and no folder, or folders", ErrConfig, c.Generated, maxGenerated)
	}
	sources := c.Sources()
	for i, from := range []struct {
		folder string
		read   func(string) (set, error)
	}{{c.WikiTables, readWikiTables}, {c.TabFact, readTabFact}, {c.Receipts, readReceipts}} {
		n := c.Clients[i]
		if c.Generated == 0 && (from.folder == "") != (n == 0) || n < 0 {
			return nil, fmt.Errorf("%w: %d clients of %s, whose folder is %q: give both, or neither", ErrConfig, n, sources[i], from.folder)
		}
		if c.Generated > 0 {
			from.read = func(string) (set, error) { return generatedSet(sources[i], c.Generated, c.Seed, c.Pages) }
		}
		if n == 0 {
			continue
		}
		s, err := from.read(from.folder)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrConfig, sources[i], err)
		}
		for _, part := range [][]document{s.train, s.test} {
			for i := range part {
				if d := &part[i]; c.Pages && d.image == nil {
					d.image = dataset.DrawPage(d.words, d.boxes)
				}
			}
		}
		rng := rand.New(rand.NewPCG(c.Seed, uint64(i)))
		rng.Shuffle(len(s.train), func(a, b int) { s.train[a], s.train[b] = s.train[b], s.train[a] })
		s.train, s.test = most(s.train, c.Documents), most(s.test, c.TestDocuments)
		aside := len(s.train) / 10
		held = append(held, s.train[:aside]...)
		train := s.train[aside:]
		if n > len(train) {
			return nil, fmt.Errorf("%w: %d clients of %s, which has %d documents to learn from", ErrConfig, n, sources[i], len(train))
		}
		for k := range n {
			name := fmt.Sprintf("%s-%d", sources[i], k+1)
			from := len(f.Train.Examples)
			for _, d := range train[len(train)*k/n : len(train)*(k+1)/n] {
				f.Train.Examples = append(f.Train.Examples, d.examples(name)...)
			}
			var mine []int
			for at := from; at < len(f.Train.Examples); at++ {
				mine = append(mine, at)
			}
			f.Clients, f.Names = append(f.Clients, mine), append(f.Names, name)
		}
		for _, d := range s.test {
			f.Test.Examples = append(f.Test.Examples, d.examples("")...)
		}
	}
	if len(f.Clients) == 0 {
		return nil, fmt.Errorf("%w: no set is named", ErrConfig)
	}
	for _, d := range held {
		f.Train.Examples = append(f.Train.Examples, d.examples("")...)
	}
	return f, nil
}

// most is the first n documents, all where n is 0.
func most(all []document, n int) []document {
	if n == 0 {
		return all
	}
	return all[:min(n, len(all))]
}

// examples are a document's questions, which belong to a client.
func (d document) examples(user string) []dataset.Example {
	out := make([]dataset.Example, 0, len(d.questions))
	for _, q := range d.questions {
		out = append(out, dataset.Example{Source: d.source, User: user, Provider: d.provider, Words: d.words, Boxes: d.boxes, Image: d.image, Question: q.text, Answers: q.answers})
	}
	return out
}
