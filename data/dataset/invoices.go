package dataset

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/seeded"
)

// GeneratorVersion names what Invoices and the text of the default base (lab/pretraining) are: it changes
// whenever the text for a seed does, and a base records it.
const GeneratorVersion = "starling-text/1"

// InvoiceConfig says which part of the endless set of invoices to make.
type InvoiceConfig struct {
	Seed  uint64
	Split string // "train", "validation" or "test": splits share no provider

	Clients int // how many clients; their names go to Example.User
	// PerClient is how many documents each client holds.
	PerClient int
	// Providers is how many providers bill one client, 0 means 6. A provider
	// bills one client only and has one trade, so clients differ in labels.
	Providers int
}

const defaultProviders = 6

// maxProviders keeps the number that names a provider far from overflow.
const maxProviders = 1 << 40

// InvoiceLabels returns the names of the 8 classes.
func InvoiceLabels() []string { return slices.Clone(invoiceLabels) }

// Invoices makes OCR-like invoice texts: each provider has a name, layout,
// vocabulary, number and date format of its own, and a scanner's noise that
// swaps, drops and splits characters. The same configuration gives the same
// set, and a client's documents do not depend on how many clients there are.
func Invoices(cfg InvoiceConfig) (*Set, error) {
	split, providers, err := cfg.check()
	if err != nil {
		return nil, err
	}
	set := &Set{Labels: InvoiceLabels(), Examples: make([]Example, 0, cfg.Clients*cfg.PerClient)}
	for client := range cfg.Clients {
		set.Examples = cfg.client(set.Examples, split, providers, client)
	}
	return set, nil
}

// InvoicesOf makes what Invoices makes for one client, 0..Clients-1, and nothing
// of the others'.
func InvoicesOf(cfg InvoiceConfig, client int) (*Set, error) {
	split, providers, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if client < 0 || client >= cfg.Clients {
		return nil, fmt.Errorf("dataset: invoices: client %d, want one of 0..%d", client, cfg.Clients-1)
	}
	return &Set{Labels: InvoiceLabels(), Examples: cfg.client(nil, split, providers, client)}, nil
}

func (cfg InvoiceConfig) check() (split, providers int, err error) {
	split = slices.Index(seeded.Splits, cfg.Split)
	providers = cfg.Providers
	if providers == 0 {
		providers = defaultProviders
	}
	switch {
	case split < 0:
		err = fmt.Errorf("dataset: invoices: split is %q, want one of %q", cfg.Split, seeded.Splits)
	case cfg.Clients < 1 || cfg.PerClient < 1 || providers < 1:
		err = fmt.Errorf("dataset: invoices: clients %d, documents per client %d and providers %d must all be at least 1", cfg.Clients, cfg.PerClient, providers)
	case uint64(cfg.Clients) > maxProviders/uint64(providers):
		err = fmt.Errorf("dataset: invoices: %d clients of %d providers are beyond the %d providers that can be named", cfg.Clients, providers, int64(maxProviders))
	}
	return split, providers, err
}

// client appends a client's documents.
func (cfg InvoiceConfig) client(to []Example, split, providers, client int) []Example {
	user := fmt.Sprintf("%s-%d", cfg.Split, client)
	known := make([]*provider, providers)
	for k := range known {
		known[k] = newProvider(cfg.Seed, uint64(split), uint64(client*providers+k))
	}
	rng := seeded.Source(cfg.Seed, 0x14, uint64(split), uint64(client))
	for range cfg.PerClient {
		p := known[rng.IntN(len(known))]
		to = append(to, Example{Text: p.document(rng), Label: p.trade, User: user, Provider: p.key})
	}
	return to
}

// PublicInvoices is an endless sequence of documents of public providers.
func PublicInvoices(seed uint64) iter.Seq[string] {
	return func(yield func(string) bool) {
		rng := seeded.Source(seed, 0x15)
		for i := uint64(0); ; i++ {
			p := newProvider(seed, seeded.PublicSplit, i)
			for range 4 {
				if !yield(p.document(rng)) {
					return
				}
			}
		}
	}
}

// provider is one sender of invoices: everything that stays the same from
// one of its documents to the next.
type provider struct {
	trade int
	key   string // unlike names, no two providers share one
	name  string
	goods []string
	units []string

	number, date, customer, item, net, tax, total, pay, bank string

	currency      string
	currencyFirst bool
	decimal       string
	dateStyle     int
	order         []int // of the blocks of a document
	customerNo    int
	rate          int     // tax in percent
	noise         float64 // chance that the scanner harms a word
	upper         bool
	strays        float64 // chance of a line that belongs to another trade
}

func newProvider(seed, split, n uint64) *provider {
	rng := seeded.Source(seed, 0x16, split, n)
	p := &provider{
		trade:    rng.IntN(len(trades)),
		number:   seeded.Pick(rng, numberNames),
		date:     seeded.Pick(rng, dateNames),
		customer: seeded.Pick(rng, customerNames),
		item:     seeded.Pick(rng, itemNames),
		net:      seeded.Pick(rng, netNames),
		tax:      seeded.Pick(rng, taxNames),
		total:    seeded.Pick(rng, totalNames),
		pay:      seeded.Pick(rng, payNames),
		bank:     seeded.Pick(rng, bankNames),
		currency: seeded.Pick(rng, currencies),
	}
	p.currencyFirst = rng.IntN(2) == 0
	p.decimal = seeded.Pick(rng, []string{".", ",", " "})
	p.dateStyle = rng.IntN(4)
	p.order = rng.Perm(4)
	p.customerNo = 100 + rng.IntN(9900)
	p.rate = []int{5, 7, 19, 20, 21, 25}[rng.IntN(6)]
	p.noise = 0.02 + 0.10*rng.Float64()
	p.upper = rng.IntN(3) == 0
	p.strays = 0.1 + 0.4*rng.Float64()

	t := trades[p.trade]
	goods := t.goods
	if split == seeded.PublicSplit {
		goods = goods[:publicGoods]
	}
	p.goods = choose(rng, goods, 6)
	p.units = choose(rng, t.units, 2)
	p.key = seeded.ProperName(4*n + split)
	p.name = p.key
	// Not every sender says in its name what it sells.
	switch rng.IntN(4) {
	case 0:
		p.name += " " + seeded.Pick(rng, t.suffix)
	case 1:
		p.name += " " + seeded.Pick(rng, []string{"group", "partners", "holding", "and sons", "international"})
	}
	p.name += " " + seeded.Pick(rng, []string{"gmbh", "ltd", "inc", "sa", "ag", "plc", "bv", "llc"})
	return p
}

// document writes one invoice: a heading, then four blocks in the provider's
// order, then what is at the foot; and scans it.
func (p *provider) document(rng *rand.Rand) string {
	var w []string
	add := func(words ...string) { w = append(w, words...) }
	add(p.name)
	lines := 1 + rng.IntN(3)
	sum := 0
	var items []string
	for range lines {
		goods, units := p.goods, p.units
		if rng.Float64() < p.strays && len(items) > 0 {
			other := trades[rng.IntN(len(trades))]
			goods, units = other.goods[:publicGoods], other.units
		}
		amount := 500 + rng.IntN(90000)
		sum += amount
		items = append(items, seeded.Pick(rng, goods))
		if rng.IntN(2) == 0 {
			items = append(items, strconv.Itoa(1+rng.IntN(40)), seeded.Pick(rng, units))
		}
		if rng.IntN(3) > 0 {
			items = append(items, p.amount(amount))
		}
	}
	for _, block := range p.order {
		switch block {
		case 0:
			add(p.number, strconv.Itoa(10000+rng.IntN(90000)))
			add(p.date, p.day(rng))
		case 1:
			if rng.IntN(2) == 0 {
				add(p.customer, strconv.Itoa(p.customerNo))
			}
		case 2:
			add(p.item)
			add(items...)
		case 3:
			if rng.IntN(2) == 0 {
				add(seeded.Pick(rng, boilerplate))
			}
		}
	}
	tax := sum * p.rate / 100
	if rng.IntN(2) == 0 {
		add(p.net, p.amount(sum), p.tax, strconv.Itoa(p.rate)+"%")
	}
	add(p.total, p.money(sum+tax))
	if rng.IntN(2) == 0 {
		add(p.pay)
	}
	if rng.IntN(4) == 0 {
		add(p.bank, strconv.Itoa(1000+rng.IntN(9000)))
	}
	text := strings.Join(w, " ")
	if p.upper {
		text = strings.ToUpper(text)
	}
	return scan(rng, text, p.noise)
}

// amount writes hundredths in the provider's number format.
func (p *provider) amount(hundredths int) string {
	return strconv.Itoa(hundredths/100) + p.decimal + fmt.Sprintf("%02d", hundredths%100)
}

func (p *provider) money(hundredths int) string {
	if p.currencyFirst {
		return p.currency + " " + p.amount(hundredths)
	}
	return p.amount(hundredths) + " " + p.currency
}

func (p *provider) day(rng *rand.Rand) string {
	d, m, y := 1+rng.IntN(28), rng.IntN(12), 2019+rng.IntN(6)
	switch p.dateStyle {
	case 0:
		return fmt.Sprintf("%02d.%02d.%d", d, m+1, y)
	case 1:
		return fmt.Sprintf("%d-%02d-%02d", y, m+1, d)
	case 2:
		return fmt.Sprintf("%d %s %d", d, months[m], y)
	default:
		return fmt.Sprintf("%02d/%02d/%02d", m+1, d, y%100)
	}
}

// choose returns n different items of from, or all of them.
func choose(rng *rand.Rand, from []string, n int) []string {
	out := make([]string, 0, n)
	for _, i := range rng.Perm(len(from))[:min(n, len(from))] {
		out = append(out, from[i])
	}
	return out
}
