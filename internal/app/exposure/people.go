// Package exposure scores a released model on the examples of members, on which it was trained, and
// of others. The attacks of dp/audit/membership and dp/audit/memorization use the scores.
package exposure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// Whose membership is at stake: By's values.
const (
	ByProvider = "provider"
	ByUser     = "user"
	ByExample  = "example"
)

// People are examples with the provider or user of each, and whether that one was a member.
type People struct {
	Examples []dataset.Example
	Owner    []string
	Member   []bool
	By       string
	Labels   []string
}

// ErrPeople reports files that do not list the members.
var ErrPeople = errors.New("audit")

// owners are the names that examples go by: "" takes providers where any example names one,
// else users where any does, else each example for itself.
func owners(by string, sets ...*dataset.Set) (func(*dataset.Example) (string, error), string, error) {
	named := func(of func(e dataset.Example) string) bool {
		return slices.ContainsFunc(sets, func(s *dataset.Set) bool {
			return slices.ContainsFunc(s.Examples, func(e dataset.Example) bool { return of(e) != "" })
		})
	}
	provider, user := func(e dataset.Example) string { return e.Provider }, func(e dataset.Example) string { return e.User }
	if by == "" {
		switch by = ByExample; {
		case named(provider):
			by = ByProvider
		case named(user):
			by = ByUser
		}
	}
	of := provider
	switch by {
	case ByUser:
		of = user
	case ByExample:
		n := 0
		return func(*dataset.Example) (string, error) { n++; return "example " + strconv.Itoa(n), nil }, by, nil
	case ByProvider:
	default:
		return nil, "", fmt.Errorf("%w: by %.40q, want %s, %s or %s", ErrPeople, by, ByProvider, ByUser, ByExample)
	}
	return func(e *dataset.Example) (string, error) {
		if name := of(*e); name != "" {
			return name, nil
		}
		return "", fmt.Errorf("names no %s, and others do", by)
	}, by, nil
}

// apart are the people of two files.
func apart(members, others *dataset.Set, by string) (*People, error) {
	name, by, err := owners(by, members, others)
	if err != nil {
		return nil, err
	}
	p := &People{By: by, Labels: members.Labels}
	in := map[string]bool{}
	for _, set := range []*dataset.Set{members, others} {
		member := set == members
		for i := range set.Examples {
			who, err := name(&set.Examples[i])
			if err != nil {
				return nil, &dataset.LineError{File: set.Name, Line: set.Examples[i].Line, Err: err}
			}
			if was, known := in[who]; known && was != member {
				return nil, fmt.Errorf("%w: %s %.60q is in both files, of members and of others", ErrPeople, by, who)
			}
			in[who] = member
			p.add(set.Examples[i], who, member)
		}
	}
	return p, nil
}

// Among returns the people of one file; the named ones were members.
func Among(all *dataset.Set, in []string, by string) (*People, error) {
	name, by, err := owners(by, all)
	if err != nil {
		return nil, err
	}
	if by == ByExample {
		return nil, fmt.Errorf("%w: examples that name neither providers nor users cannot be named as members: give two files", ErrPeople)
	}
	p := &People{By: by, Labels: all.Labels}
	member := map[string]bool{}
	for _, n := range in {
		member[n] = true
	}
	for i := range all.Examples {
		who, err := name(&all.Examples[i])
		if err != nil {
			return nil, &dataset.LineError{File: all.Name, Line: all.Examples[i].Line, Err: err}
		}
		p.add(all.Examples[i], who, member[who])
	}
	if members, _ := p.Count(); members == 0 && len(in) > 0 {
		return nil, fmt.Errorf("%w: none of the %d names is a %s of %s", ErrPeople, len(in), by, all.Name)
	}
	return p, nil
}

func (p *People) add(e dataset.Example, who string, member bool) {
	p.Examples, p.Owner, p.Member = append(p.Examples, e), append(p.Owner, who), append(p.Member, member)
}

// Count returns the numbers of members and of others.
func (p *People) Count() (members, others int) {
	seen := map[string]bool{}
	for i, who := range p.Owner {
		if seen[who] {
			continue
		}
		if seen[who] = true; p.Member[i] {
			members++
		} else {
			others++
		}
	}
	return members, others
}

// Bounds of a file of names.
const (
	mostNamesBytes = 64 << 20
	mostName       = 1 << 10
)

// readNames reads who was a member: a JSON list of strings.
func readNames(path string) ([]string, error) {
	f, err := named.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostNamesBytes+1))
	if err != nil {
		return nil, named.Wrap(err)
	}
	if len(b) > mostNamesBytes {
		return nil, fmt.Errorf("%s: more than %d bytes", path, mostNamesBytes)
	}
	names, err := parseNames(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return names, nil
}

func parseNames(b []byte) ([]string, error) {
	var names []string
	if err := json.Unmarshal(b, &names); err != nil || !bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		return nil, errors.New("want a JSON list of the members' names")
	}
	for i, n := range names {
		if n == "" || len(n) > mostName {
			return nil, fmt.Errorf("name %d has %d bytes, want 1 to %d", i+1, len(n), mostName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
