package dataset

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/seeded"
)

// DocumentsVersion names what Documents and PublicDocuments make: it changes whenever
// a document for a seed does, and a base records it.
const DocumentsVersion = "starling-documents/1"

// TrainSplit is the split whose providers [DocumentConfig.Seen] is about.
const TrainSplit = "train"

// RedSplit is the split that attacks ask about (Tito et al. 2023, section 3): one half is other documents of the training
// split's providers, the other of the test split's.
const RedSplit = "red"

// DocumentSplits are the splits of Documents. All but the red one have providers of their own.
func DocumentSplits() []string { return append(slices.Clone(seeded.Splits), RedSplit) }

const (
	trainSplit = 0
	testSplit  = 2
	redSplit   = 4 // as a source's number; publicSplit is 3
)

// MaxSheets are the most pages of a document: each has a key of its own.
const MaxSheets = keyTotal

// DocumentConfig says which part of the endless set of documents to make.
type DocumentConfig struct {
	Seed      uint64
	Split     string // one of DocumentSplits
	Clients   int    // how many clients; their names go to Example.User
	PerClient int    // documents of each client
	Providers int    // of each client, 0 means 4; each sends to one client only
	// Seen is the share of a client's documents, in 0..1, from providers that the training split's client of the same
	// number has, too. The red split's is a half.
	Seen float64
	// Identifiers gives each provider a tax number and a registration id, which half of its
	// documents print, and some of their questions ask for. All else stays as it is.
	Identifiers bool
	// Sheets are the most pages of a document, 0 means 1. Each page is an example of its own, asked for what is on it.
	Sheets int
	// Asked weighs the keys that questions ask for, among those on a page; nil: all alike, identifiers less. A page with
	// none of these keys gets no question.
	Asked map[string]int

	// Pages, Noise and Unnamed set what a scanner makes of a document. All else stays the same.
	Pages bool    // each with a picture of its page, of PageSideDrawn pixels
	Noise float64 // share of letters and digits that are misread, 0..1; answers are as printed
	// Unnamed leaves the sender's name out of the text: only the logo shows the sender.
	Unnamed bool
}

// Documents makes invoices as a scanner reads them, each page with a question about it:
// words in reading order with their boxes, the page's picture with the provider's logo if
// that is asked for, the answer as it is there. A provider has a layout, a logo and wordings of its own,
// of twenty of each key. The same configuration gives the same set, and a client's
// documents do not depend on how many clients there are.
func Documents(cfg DocumentConfig) (*Set, error) {
	split, err := cfg.check()
	if err != nil {
		return nil, err
	}
	set := &Set{Name: "generated documents", Examples: make([]Example, 0, cfg.Clients*cfg.PerClient)}
	for client := range cfg.Clients {
		from := len(set.Examples)
		if set.Examples = cfg.client(set.Examples, split, client); len(set.Examples) == from {
			return nil, fmt.Errorf("dataset: documents: none of client %d's %d documents has a key that is asked for: make more of them", client, cfg.PerClient)
		}
	}
	return set, nil
}

// keysOf are the names of keys, as errors list them.
func keysOf(keys []documentKey) string {
	var names []string
	for _, k := range keys {
		names = append(names, k.key)
	}
	return strings.Join(names, ", ")
}

// check fills in what the configuration leaves open, and numbers its split.
func (cfg *DocumentConfig) check() (split int, err error) {
	split = slices.Index(DocumentSplits(), cfg.Split)
	if cfg.Providers == 0 {
		cfg.Providers = 4
	}
	if cfg.Sheets == 0 {
		cfg.Sheets = 1
	}
	red := cfg.Split == RedSplit
	bad := func(format string, args ...any) error { return fmt.Errorf("dataset: documents: "+format, args...) }
	switch {
	case split < 0:
		return 0, bad("split is %q, want one of %q", cfg.Split, DocumentSplits())
	case cfg.Clients < 1 || cfg.PerClient < 1 || cfg.Providers < 1:
		return 0, bad("clients %d, documents per client %d and providers %d must all be at least 1", cfg.Clients, cfg.PerClient, cfg.Providers)
	case !(cfg.Noise >= 0 && cfg.Noise <= 1):
		return 0, bad("noise is %v, want within 0..1", cfg.Noise)
	case !(cfg.Seen >= 0 && cfg.Seen <= 1):
		return 0, bad("the share of seen providers is %v, want within 0..1", cfg.Seen)
	case cfg.Seen > 0 && (red || split == trainSplit):
		return 0, bad("the share of seen providers is %v: the training split's are all seen, the red split's by half", cfg.Seen)
	case cfg.Sheets < 1 || cfg.Sheets > MaxSheets:
		return 0, bad("%d pages of a document, want 1 to %d", cfg.Sheets, MaxSheets)
	case uint64(cfg.Clients) > maxProviders/uint64(cfg.Providers):
		return 0, bad("%d clients of %d providers are beyond the %d providers that can be named", cfg.Clients, cfg.Providers, int64(maxProviders))
	}
	for _, key := range slices.Sorted(maps.Keys(cfg.Asked)) {
		named := func(k documentKey) bool { return k.key == key }
		switch n := cfg.Asked[key]; {
		case !cfg.Identifiers && slices.ContainsFunc(identifierKeys, named):
			return 0, bad("the key %q is asked for, which documents have with identifiers alone", key)
		case !slices.ContainsFunc(documentKeys, named) && !slices.ContainsFunc(identifierKeys, named):
			return 0, bad("no document has the key %.40q, want %s; with identifiers also %s", key, keysOf(documentKeys), keysOf(identifierKeys))
		case n < 0 || n > maxAsked:
			return 0, bad("the key %q is asked for %d in proportion, want 0 to %d", key, n, maxAsked)
		}
	}
	if red {
		cfg.Seen, split = 0.5, redSplit
	}
	return split, nil
}

// maxAsked keeps sums of proportions far from overflow.
const maxAsked = 1 << 20

// client appends a client's documents.
func (cfg DocumentConfig) client(to []Example, split, client int) []Example {
	own := min(split, testSplit) // the split with its providers
	senders := cfg.senders(own, split, client)
	var seen []*sender
	if cfg.Seen > 0 {
		seen = cfg.senders(trainSplit, split, client)
	}
	rng := seeded.Source(cfg.Seed, 0x17, uint64(split), uint64(client))
	misread := seeded.Source(cfg.Seed, 0x1b, uint64(split), uint64(client))
	for i := range cfg.PerClient {
		from := senders
		if int(float64(i+1)*cfg.Seen) > int(float64(i)*cfg.Seen) {
			from = seen
		}
		s, sheets := from[rng.IntN(len(from))], 1
		if cfg.Sheets > 1 {
			sheets += rng.IntN(cfg.Sheets)
		}
		for _, e := range s.document(rng, sheets) {
			if cfg.Noise > 0 {
				e.misread(misread, cfg.Noise)
			}
			e.User = fmt.Sprintf("%s-%d", cfg.Split, client)
			to = append(to, e)
		}
	}
	return to
}

// senders returns the providers of a client's documents of a split; another split may have them, too.
func (cfg DocumentConfig) senders(of, split, client int) []*sender {
	known := make([]*sender, cfg.Providers)
	for k := range known {
		n := uint64(client*cfg.Providers + k)
		s := newSender(cfg.Seed, uint64(of), n)
		s.unnamed, s.pages, s.asked = cfg.Unnamed, cfg.Pages, cfg.Asked
		if cfg.Identifiers {
			if s.identify(cfg.Seed, uint64(of), n); of != split {
				s.printing = seeded.Source(cfg.Seed, 0x1c, uint64(of), n, uint64(split))
			}
		}
		known[k] = s
	}
	return known
}

// SeenProviders returns the sorted keys of a set's providers that the training set has, too: an
// audit of a model trained on that set calls them members.
func SeenProviders(set, training *Set) []string {
	trained, seen := map[string]bool{}, map[string]bool{}
	for _, e := range training.Examples {
		trained[e.Provider] = true
	}
	for _, e := range set.Examples {
		if trained[e.Provider] {
			seen[e.Provider] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// PublicDocuments is an endless sequence of documents of public providers, none of
// whom sends one of Documents. They use the first half of the wordings, and have pictures.
func PublicDocuments(seed uint64) iter.Seq[Example] {
	return func(yield func(Example) bool) {
		rng := seeded.Source(seed, 0x18)
		for i := uint64(0); ; i++ {
			s := newSender(seed, seeded.PublicSplit, i)
			s.pages = true
			for range 2 {
				if !yield(s.document(rng, 1)[0]) {
					return
				}
			}
		}
	}
}

// weighted draws one of some keys by their proportions; -1 where all have none.
func weighted(rng *rand.Rand, of []documentKey, asked map[string]int) int {
	sum := 0
	for _, k := range of {
		sum += asked[k.key]
	}
	if sum == 0 {
		return -1
	}
	at := rng.IntN(sum)
	return slices.IndexFunc(of, func(k documentKey) bool { at -= asked[k.key]; return at < 0 })
}
