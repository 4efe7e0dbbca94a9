package exposure

import (
	"maps"
	"slices"
)

// Constant are the keys whose answer is one and the same in all of a provider's documents: its
// name or tax number, not a document's date. What repeats is what may be remembered (Tito et al.
// 2023, section 5.1); of other keys what was removed tells nothing of a provider. A key counts
// where nine of ten providers that are asked for it twice have one answer; nil if none does.
// Membership plays no part in it.
func (p *People) Constant() (keys []string) {
	answers := map[[2]string]map[string]int{}
	for i, e := range p.Examples {
		if e.Key == "" || len(e.Answers) == 0 {
			continue
		}
		at := [2]string{e.Key, p.Owner[i]}
		if answers[at] == nil {
			answers[at] = map[string]int{}
		}
		answers[at][said(e.Answers[0])]++
	}
	type tally struct{ asked, one int }
	of := map[string]*tally{}
	for at, a := range answers {
		n := 0
		for _, k := range a {
			n += k
		}
		if n < 2 {
			continue
		}
		if of[at[0]] == nil {
			of[at[0]] = &tally{}
		}
		of[at[0]].asked++
		if len(a) == 1 {
			of[at[0]].one++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if 10*of[key].one >= 9*of[key].asked {
			keys = append(keys, key)
		}
	}
	return keys
}

// remembered says of each example whether it is asked for what may be remembered: of all where
// no key is known to be constant.
func (p *People) remembered() []bool {
	keys, out := p.Constant(), make([]bool, len(p.Examples))
	for i, e := range p.Examples {
		out[i] = keys == nil || slices.Contains(keys, e.Key)
	}
	return out
}
