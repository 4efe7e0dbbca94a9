package dataset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/seeded"
)

// sender is a provider of documents: what stays the same from one to the next.
type sender struct {
	key    string
	name   []string
	labels []string // by key: what is before its value
	goods  []string
	order  []int // of the keys down the page

	left, value int // columns of labels and values
	below       bool
	right       bool // the head is at the right
	currency    string
	decimal     string
	prefix      string // of numbers
	dateStyle   int
	logo        uint32

	pages, unnamed bool // see DocumentConfig
	asked          map[string]int

	identifiers [][2]string // label and value of each of identifierKeys; nil: none
	printing    *rand.Rand  // which documents have them
}

func newSender(seed, split, n uint64) *sender {
	rng := seeded.Source(seed, 0x19, split, n)
	t := trades[rng.IntN(len(trades))]
	s := &sender{
		key: seeded.ProperName(4*n + split), labels: make([]string, len(documentKeys)), order: rng.Perm(len(documentKeys) - 1),
		left: 40 + 20*rng.IntN(10), below: rng.IntN(4) == 0, right: rng.IntN(2) == 0,
		currency: seeded.Pick(rng, []string{"EUR", "USD", "GBP", "$", "CHF"}), decimal: seeded.Pick(rng, []string{".", ","}),
		prefix: seeded.Pick(rng, []string{"", "INV-", "R", "#", "A/"}), dateStyle: rng.IntN(4), logo: rng.Uint32(),
		goods: choose(rng, t.goods[:publicGoods], 3),
	}
	s.value = s.left + 240 + 20*rng.IntN(8)
	s.name = []string{title(s.key), title(seeded.Pick(rng, t.suffix)), seeded.Pick(rng, []string{"Ltd", "GmbH", "Inc", "SA", "LLC"})}
	for k, key := range documentKeys {
		of := key.labels
		if split == seeded.PublicSplit {
			of = of[:len(of)/2]
		}
		s.labels[k] = seeded.Pick(rng, of)
	}
	return s
}

// identify gives the sender its numbers, from a source of their own.
func (s *sender) identify(seed, split, n uint64) {
	s.printing = seeded.Source(seed, 0x1a, split, n)
	for k, key := range identifierKeys {
		value := fmt.Sprintf("%02d-%07d", 10+s.printing.IntN(90), s.printing.IntN(10_000_000))
		if k > 0 {
			value = fmt.Sprintf("%s%06d", seeded.Pick(s.printing, []string{"HR", "RC", "CN", "B"}), s.printing.IntN(1_000_000))
		}
		s.identifiers = append(s.identifiers, [2]string{seeded.Pick(s.printing, key.labels), value})
	}
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Sizes of a page's type, in thousandths of it.
const (
	letterWidth = 14
	lineHeight  = 44
	wordGap     = 12
)

// page is a document under construction.
type page struct {
	words []string
	boxes [][4]uint16
}

// write puts words in a line.
func (p *page) write(x, y int, words ...string) {
	for _, w := range words {
		end := x + letterWidth*len(w)
		p.words = append(p.words, w)
		p.boxes = append(p.boxes, [4]uint16{uint16(min(x, 1000)), uint16(min(y, 1000)), uint16(min(end, 1000)), uint16(min(y+lineHeight*3/4, 1000))})
		x = end + wordGap
	}
}

// document writes one of so many pages, and asks something about each. Every page has the sender's name and logo and goods,
// the keys are dealt out over them, and the last has the total.
func (s *sender) document(rng *rand.Rand, sheets int) []Example {
	values := make([][]string, len(documentKeys))
	day, month, year := 1+rng.IntN(28), 1+rng.IntN(12), 2019+rng.IntN(8)
	amount := 100 + rng.IntN(99900)
	values[keyNumber] = []string{s.prefix + strconv.Itoa(1000+rng.IntN(99000))}
	values[keyDate] = s.date(day, month, year)
	values[keyDue] = s.date(1+rng.IntN(28), month%12+1, year+month/12)
	values[keyCustomer] = []string{title(seeded.ProperName(rng.Uint64N(8000))), title(seeded.ProperName(rng.Uint64N(8000)))}
	values[keyTotal] = []string{s.currency, s.money(amount)}
	values[keySender] = s.name

	head := 40
	if s.right {
		head = 480
	}
	order := slices.DeleteFunc(slices.Clone(s.order), func(k int) bool { return k == keyTotal })
	rest := amount
	var out []Example
	for n := range sheets {
		var p page
		on := order[len(order)*n/sheets : len(order)*(n+1)/sheets]
		if !s.unnamed {
			p.write(head, 40, s.name...)
		}
		y := 150
		for _, k := range on {
			y = s.pair(&p, k, values[k], y)
		}
		for range 1 + rng.IntN(2) {
			part := 1 + rng.IntN(rest)
			rest = max(1, rest-part)
			p.write(s.left, y, strings.Fields(seeded.Pick(rng, s.goods))...)
			p.write(760, y, s.money(part))
			y += lineHeight
		}
		on = append(slices.Clone(on), keySender)
		if n == sheets-1 {
			y = s.pair(&p, keyTotal, values[keyTotal], y+lineHeight/2)
			on = append(on, keyTotal)
		}
		slices.Sort(on)
		e, asks := s.ask(rng, &p, on, values, y)
		if sheets > 1 {
			p.write(s.left, 940, fmt.Sprintf("%d/%d", n+1, sheets))
		}
		if asks {
			out = append(out, s.example(e, &p))
		}
	}
	return out
}

// ask prints the sender's identifiers below the rest of every second page, and asks for one of the keys that a page has.
func (s *sender) ask(rng *rand.Rand, p *page, on []int, values [][]string, y int) (e Example, asks bool) {
	var keys []documentKey
	var answers []string
	for _, k := range on {
		keys, answers = append(keys, documentKeys[k]), append(answers, strings.Join(values[k], " "))
	}
	question := func(rng *rand.Rand, k int) Example {
		return Example{Question: fmt.Sprintf(seeded.Pick(rng, questionForms), seeded.Pick(rng, keys[k].asked)), Key: keys[k].key, Answers: []string{answers[k]}}
	}
	alike := len(s.asked) == 0
	if alike {
		e = question(rng, rng.IntN(len(keys)))
	}
	if s.identifiers != nil && s.printing.IntN(2) == 0 {
		for i, id := range s.identifiers {
			p.write(s.left, y+lineHeight*(i+1), append(strings.Fields(id[0]), id[1])...)
			keys, answers = append(keys, identifierKeys[i]), append(answers, id[1])
		}
		if i := s.printing.IntN(4 * len(s.identifiers)); alike && i < len(s.identifiers) {
			e = question(s.printing, len(on)+i)
		}
	}
	if alike {
		return e, true
	}
	k := weighted(rng, keys, s.asked)
	if k < 0 {
		return e, false
	}
	return question(rng, k), true
}

// example is a page with what is asked about it.
func (s *sender) example(e Example, p *page) Example {
	e.Text, e.Words, e.Boxes, e.Provider = strings.Join(p.words, " "), p.words, p.boxes, s.key
	if s.pages {
		e.Image = s.picture(p)
	}
	return e
}

// alike are letters and digits that scanners take for each other, two by two.
const alike = "0O1lI15S8B2Z6GrnceuvmnhbQOg9"

// misread reads a share of the words' letters and digits as others, those that look alike where there are some.
func (e *Example) misread(rng *rand.Rand, share float64) {
	words := slices.Clone(e.Words) // the picture keeps what is printed
	for i, w := range words {
		read := []byte(w)
		for k, c := range read {
			if letter := c|0x20 >= 'a' && c|0x20 <= 'z'; !letter && (c < '0' || c > '9') || rng.Float64() >= share {
				continue
			}
			if at := strings.IndexByte(alike, c); at >= 0 {
				read[k] = alike[at^1]
			} else {
				read[k] = byte('a' + rng.IntN(26))
			}
		}
		words[i] = string(read)
	}
	e.Words, e.Text = words, strings.Join(words, " ")
}

// pair writes a key with its value, beside it or below, and returns the next line.
func (s *sender) pair(p *page, k int, value []string, y int) int {
	p.write(s.left, y, strings.Fields(s.labels[k])...)
	if s.below {
		p.write(s.left, y+lineHeight, value...)
		return y + 2*lineHeight
	}
	p.write(s.value, y, value...)
	return y + lineHeight
}

func (s *sender) money(cents int) string {
	return fmt.Sprintf("%d%s%02d", cents/100, s.decimal, cents%100)
}

func (s *sender) date(day, month, year int) []string {
	switch s.dateStyle {
	case 0:
		return []string{fmt.Sprintf("%02d.%02d.%d", day, month, year)}
	case 1:
		return []string{fmt.Sprintf("%d-%02d-%02d", year, month, day)}
	case 2:
		return []string{fmt.Sprintf("%02d/%02d/%d", month, day, year)}
	}
	return []string{strconv.Itoa(day), monthNames[month-1], strconv.Itoa(year)}
}

// logoGrid is how many squares a page has each way, of which a logo inks some.
const logoGrid = 32

// inked yields where the logo has ink: opposite to the sender's name.
func (s *sender) inked(yield func(x, y int) bool) {
	left := logoGrid - 9
	if s.right {
		left = 1
	}
	for i := range 32 {
		if s.logo>>i&1 == 1 && !yield(left+i%8, i/8) {
			return
		}
	}
}
