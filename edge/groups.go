package edge

import (
	"hash/fnv"
	"io"
	"math"
	"strings"
	"unicode"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/leaf/uniform"
)

// NewGroupedData is NewData for a job with privacy.groups: each unit's examples are divided into so
// many groups, each of which Contribute trains, clips and quantizes by itself. 0 and 1 are no groups.
// Examples are dealt at random, whatever their content, except that near-duplicates are in one group
// and, where the device is the unit, so are all examples that name one provider. seed replaces the
// device's secret randomness; empty: crypto/rand.
func NewGroupedData(set *dataset.Set, t task.Task, providers int, rate float64, groups int, seed []byte) (*Data, error) {
	return newData(set, t, division{providers, rate, groups, seed}, nil)
}

// divide deals the unit's examples into groups. The set is what data was encoded from.
func (u *unit) divide(set *dataset.Set, by division, rnd io.Reader, pause func() error) error {
	if by.groups < 2 {
		return nil
	}
	of, err := dealExamples(set.Examples, by.groups, by.providers == 0, rnd, pause)
	if err != nil {
		return err
	}
	u.groups, u.group = by.groups, make([]int, u.data.n)
	for row := range u.group {
		u.group[row] = of[u.data.of[row]]
	}
	u.regroup()
	return nil
}

// regroup makes the parts of a unit in groups: each has its own rows of data alone.
func (u *unit) regroup() {
	if u.groups < 2 {
		return
	}
	held := make([]bool, u.data.n)
	for _, row := range u.data.held {
		held[row] = true
	}
	u.parts = make([]*local, u.groups)
	for g := range u.parts {
		part := *u.data
		part.held, part.rest = nil, nil
		for row, of := range u.group {
			switch {
			case of != g:
				part.rest = append(part.rest, row)
			case held[row]:
				part.held = append(part.held, row)
			}
		}
		u.parts[g] = &part
	}
}

// trainable are the parts of a unit that have anything to train on.
func (u unit) trainable() (parts []*local) {
	if u.parts == nil {
		return []*local{u.data}
	}
	for _, p := range u.parts {
		if p.trained() > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// dealExamples gives each example one of k groups. An example's own group is drawn. It goes to that
// of an earlier one instead if it is its near-duplicate, the same document, its continuation or, with
// bySender, if both name one provider: a text in j groups would move a device's sum j times as far.
// An earlier one is always one that has its own group: no chain of likenesses gathers everything.
func dealExamples(examples []dataset.Example, k int, bySender bool, rnd io.Reader, pause func() error) ([]int, error) {
	order := make([]int, len(examples))
	for i := range order {
		order[i] = i
	}
	if err := uniform.Shuffle(rnd, order); err != nil {
		return nil, err //nolint:wrapcheck // of the source of randomness
	}
	group := make([]int, len(examples))
	for at, i := range order {
		group[i] = at % k
	}
	like, senders := newLikeness(), map[string]int{}
	for i := range examples {
		if pause != nil {
			if err := pause(); err != nil {
				return nil, err
			}
		}
		e := &examples[i]
		if bySender && e.Provider != "" {
			if first, known := senders[e.Provider]; known {
				group[i] = group[first]
				continue
			}
			senders[e.Provider] = i
		}
		if i > 0 && examples[i-1].Continued {
			group[i] = group[i-1]
			continue
		}
		if first, found := like.find(e, i); found {
			group[i] = group[first]
		}
	}
	return group, nil
}

// likeness finds near-duplicates by MinHash (Broder 1997): of two texts the share of equal hashes
// estimates what share of their shingles both have.
type likeness struct {
	bands  map[uint64]int // by hash of a band of a text's hashes: its example
	hashes map[int]*[hashes]uint32
	exact  map[string]int // by identity of a picture or a recording
}

const (
	shingle  = 8       // characters
	hashes   = 32      // of a text
	band     = 4       // hashes: with 8 bands texts with .5, .7 and .9 of shingles in common meet with .40, .89 and .9999
	alike    = 16      // equal hashes from which texts are near-duplicates: half of their shingles
	mostLike = 1 << 16 // characters of a text that are looked at
)

func newLikeness() *likeness {
	return &likeness{map[uint64]int{}, map[int]*[hashes]uint32{}, map[string]int{}}
}

// find returns an earlier example that i is a near-duplicate of, or remembers i as one that later
// ones may be near-duplicates of.
func (l *likeness) find(e *dataset.Example, i int) (first int, found bool) {
	var names []string
	if e.Image != nil {
		names = append(names, "i"+string(e.Image.Identity()))
	}
	if e.Recording != nil {
		names = append(names, "r"+string(e.Recording.Identity()))
	}
	for _, name := range names {
		if first, found := l.exact[name]; found {
			return first, true
		}
	}
	text := contentOf(e)
	var h *[hashes]uint32
	var keys [hashes / band]uint64
	if len(text) > 0 {
		h = minHash(text)
		for b := range keys {
			key := uint64(b) + 1
			for _, v := range h[b*band : (b+1)*band] {
				key = mix(key ^ uint64(v))
			}
			keys[b] = key
			if first, met := l.bands[key]; met && equal(h, l.hashes[first]) >= alike {
				return first, true
			}
		}
	}
	for _, name := range names {
		l.exact[name] = i
	}
	if h != nil {
		l.hashes[i] = h
		for _, key := range keys {
			if _, taken := l.bands[key]; !taken {
				l.bands[key] = i
			}
		}
	}
	return 0, false
}

// contentOf is what an example says, in lower case, with one space for all that is not a letter or digit.
// A question about a document is left out: all questions about it are of one content.
func contentOf(e *dataset.Example) []rune {
	parts := []string{e.Text, strings.Join(e.Words, " "), e.Prompt, e.Completion, e.Messages}
	if strings.Join(parts, "") == "" {
		parts = append(parts, e.Question, strings.Join(e.Answers, " "))
	}
	var out []rune
	for _, part := range parts {
		for _, r := range part {
			if len(out) >= mostLike {
				return out
			}
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r):
				out = append(out, unicode.ToLower(r))
			case len(out) > 0 && out[len(out)-1] != ' ':
				out = append(out, ' ')
			}
		}
		if len(out) > 0 && out[len(out)-1] != ' ' {
			out = append(out, ' ')
		}
	}
	return out
}

// minHash is the least value of each of several hashes over a text's shingles.
func minHash(text []rune) *[hashes]uint32 {
	out := new([hashes]uint32)
	for i := range out {
		out[i] = math.MaxUint32
	}
	for at := 0; at == 0 || at+shingle <= len(text); at++ {
		f := fnv.New64a()
		for _, r := range text[at:min(len(text), at+shingle)] {
			f.Write([]byte{byte(r), byte(r >> 8), byte(r >> 16)})
		}
		x := f.Sum64()
		for i := range out {
			out[i] = min(out[i], uint32(mix(x+uint64(i)*0x9e3779b97f4a7c15)>>32))
		}
	}
	return out
}

// mix is the last step of SplitMix64: every bit of the result depends on every bit of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func equal(a, b *[hashes]uint32) (n int) {
	for i := range a {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}
