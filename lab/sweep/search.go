package sweep

import "strings"

// Searched names the axes that were searched, with their values.
func (x *Index) Searched() (axes []Axis) {
	for _, a := range x.Axes {
		if a.Search {
			axes = append(axes, a)
		}
	}
	return axes
}

// Key is where a run stands among those that are compared: on every axis, the seed's
// among them, but the searched ones.
func (x *Index) Key(on map[string]string) string {
	var b strings.Builder
	for _, a := range x.Axes {
		if !a.Search {
			b.WriteString(on[a.Name] + "\x00")
		}
	}
	return b.String()
}

// Chosen keeps, of the runs that differ on searched axes alone, the one with the best
// accuracy on validation data, the first of equals: within each seed, and never by the
// test split. A place of which not all runs are done has none yet, since another number of
// trials for one method than for another would be no comparison. Without searched axes all
// runs are chosen.
func Chosen(x *Index, records []*Record) []*Record {
	if len(x.Searched()) == 0 {
		return records
	}
	trials, done, best := map[string]int{}, map[string]int{}, map[string]*Record{}
	for _, run := range x.Runs {
		trials[x.Key(run.On)]++
	}
	for _, r := range records {
		at := x.Key(r.On)
		done[at]++
		if b := best[at]; b == nil || r.Validation > b.Validation {
			best[at] = r
		}
	}
	var out []*Record
	for _, r := range records {
		if at := x.Key(r.On); best[at] == r && done[at] == trials[at] {
			out = append(out, r)
		}
	}
	return out
}
