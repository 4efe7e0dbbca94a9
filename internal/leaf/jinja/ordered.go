package jinja

import (
	"math"
	"strconv"
	"strings"
)

// keyed are items with what they are compared by: themselves or an attribute, texts without regard to case unless
// case_sensitive is given.
func (r *run) keyed(x value, a given, attribute, sensitive int) (items, keys []value, err error) {
	if items, err = r.items(x); err != nil {
		return nil, nil, err
	}
	if keys = items; a.at(attribute, "attribute", nil) != nil {
		name, err := r.text(a.at(attribute, "attribute", nil))
		if err != nil {
			return nil, nil, err
		}
		if keys, err = r.attributes(items, name); err != nil {
			return nil, nil, err
		}
	}
	if err := r.lists(len(keys)); err != nil || truth(a.at(sensitive, "case_sensitive", false)) {
		return items, keys, err
	}
	folded := make([]value, len(keys))
	for i, k := range keys {
		folded[i] = k
		if s, ok := k.(string); ok {
			if err := r.charge(lowerCost * len(s)); err != nil {
				return nil, nil, err
			}
			folded[i] = strings.ToLower(s)
		}
	}
	return items, folded, nil
}

// none is a place that no argument has.
const none = 1 << 20

// extreme is the least (-1) or the greatest (1) of items.
func extreme(sign int) filter {
	return func(r *run, x value, a given) (value, error) {
		items, keys, err := r.keyed(x, a, 1, 0)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return undefined{"an extreme of nothing"}, nil
		}
		best := 0
		for i := 1; i < len(items); i++ {
			if err := r.step(); err != nil {
				return nil, err
			}
			o, err := r.order(keys[i], keys[best])
			if err != nil {
				return nil, err
			}
			if o*sign > 0 {
				best = i
			}
		}
		return items[best], nil
	}
}

// pairsOf are items beside their keys, as tuples, for sorted.
func pairsOf(items, keys []value) []value {
	out := make([]value, len(items))
	for i := range items {
		out[i] = &list{items: []value{keys[i], items[i]}}
	}
	return out
}

func (r *run) sortedPairs(items, keys []value, down bool) ([]value, error) {
	if err := r.lists(3 * len(items)); err != nil {
		return nil, err
	}
	pairs := pairsOf(items, keys)
	return pairs, r.sorted(pairs, func(x, y value) (int, error) {
		o, err := r.order(x.(*list).items[0], y.(*list).items[0])
		if down {
			o = -o
		}
		return o, err
	})
}

func sortOf(r *run, x value, a given) (value, error) {
	items, keys, err := r.keyed(x, a, 2, 1)
	if err != nil {
		return nil, err
	}
	pairs, err := r.sortedPairs(items, keys, truth(a.at(0, "reverse", false)))
	if err != nil {
		return nil, err
	}
	out := &list{}
	for _, p := range pairs {
		out.items = append(out.items, p.(*list).items[1])
	}
	return out, nil
}

func unique(r *run, x value, a given) (value, error) {
	items, keys, err := r.keyed(x, a, 1, 0)
	if err != nil {
		return nil, err
	}
	out, seen := &list{}, map[value]bool{}
	for i, k := range keys {
		switch k.(type) {
		case nil, bool, int64, float64, string:
		default:
			return nil, r.fail("%s is not told from others", kindOf(k))
		}
		if err := r.touch(k); err != nil {
			return nil, err
		}
		if !seen[k] {
			seen[k] = true
			out.items = append(out.items, items[i])
		}
	}
	return out, nil
}

// groupBy sorts by an attribute and gives a tuple of it and its items for each value.
func groupBy(r *run, x value, a given) (value, error) {
	a.named = map[string]value{"attribute": a.at(0, "attribute", nil), "case_sensitive": a.at(2, "case_sensitive", false)}
	items, keys, err := r.keyed(x, given{named: a.named}, none, none)
	if err != nil {
		return nil, err
	}
	places := make([]value, len(items))
	for i := range items {
		places[i] = i
	}
	pairs, err := r.sortedPairs(places, keys, false)
	if err != nil {
		return nil, err
	}
	own, err := r.attributes(items, "")
	if name, ok := a.named["attribute"].(string); ok {
		own, err = r.attributes(items, name)
	}
	if err != nil {
		return nil, err
	}
	out := &list{}
	var group *list
	var last value
	for _, p := range pairs {
		key, place := p.(*list).items[0], p.(*list).items[1].(int)
		same := false
		if group != nil {
			if same, err = r.equal(last, key); err != nil {
				return nil, err
			}
		}
		if !same {
			group = &list{} // named as its first item has it
			out.items = append(out.items, &list{items: []value{own[place], group}, tuple: true, fields: []string{"grouper", "list"}})
		}
		last = key
		group.items = append(group.items, items[place])
	}
	return out, nil
}

func sumOf(r *run, x value, a given) (total value, err error) {
	items, err := r.items(x)
	if err != nil {
		return nil, err
	}
	if name, ok := a.at(0, "attribute", nil).(string); ok {
		if items, err = r.attributes(items, name); err != nil {
			return nil, err
		}
	}
	total = a.at(1, "start", int64(0))
	for _, v := range items {
		if err := r.step(); err != nil {
			return nil, err
		}
		if total, err = r.arithmetic("+", total, v); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// roundOf rounds as Python does: halves to the even digit.
func roundOf(r *run, x value, a given) (value, error) {
	f, n, isWhole, ok := number(x)
	if !ok {
		return nil, r.fail("%s is not rounded", kindOf(x))
	}
	digits, err := r.whole(a.at(0, "precision", int64(0)), "round's precision")
	if err != nil {
		return nil, err
	}
	if digits < -15 || digits > 15 {
		return nil, r.fail("round's precision is %d, want -15..15", digits)
	}
	scale := math.Pow(10, float64(digits))
	switch method, _ := a.at(1, "method", "common").(string); method {
	case "common":
		if isWhole {
			if digits >= 0 {
				return n, nil
			}
			return int64(math.RoundToEven(f*scale) / scale), nil
		}
		if digits < 0 {
			return math.RoundToEven(f*scale) / scale, nil
		}
		v, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
		if err != nil {
			return nil, r.fail("round: %v", err)
		}
		return v, nil
	case "ceil":
		return math.Ceil(f*scale) / scale, nil
	case "floor":
		return math.Floor(f*scale) / scale, nil
	}
	return nil, r.fail("round's method is common, ceil or floor")
}

// batch cuts items into lists of so many.
func batch(r *run, x value, a given) (value, error) {
	items, err := r.items(x)
	if err != nil {
		return nil, err
	}
	n, err := r.whole(a.at(0, "linecount", nil), "a batch's size")
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, r.fail("a batch of %d", n)
	}
	if err := r.lists(2*len(items) + n); err != nil {
		return nil, err
	}
	out := &list{}
	for from := 0; from < len(items); from += n {
		part := &list{items: items[from:min(len(items), from+n):min(len(items), from+n)]}
		if fill := a.at(1, "fill_with", nil); fill != nil {
			for len(part.items) < n {
				part.items = append(part.items, fill)
			}
		}
		out.items = append(out.items, part)
	}
	return out, nil
}
