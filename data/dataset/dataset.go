package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Example is one labelled text.
type Example struct {
	Text     string
	Label    int    // index into Set.Labels
	User     string // who it belongs to; "" where the source does not say
	Provider string // who it is about or comes from; "" where the source does not say
	Source   string // the data set it was taken from, where a file has several; scores are stated for each
	Line     int    // line of its file, from 1; 0 where it has none

	Words      []string    // of a document, in reading order
	Boxes      [][4]uint16 // by word: left, top, right, bottom, 0..1000 of the page
	Tags       []int       // by word: index into Set.Labels
	Labels     []int       // of a text that may have any number of labels: indices into Set.Labels, rising; nil where it has one
	Question   string
	Key        string     // what the question asks for, in a word that many share; "" where the file does not say
	Prompt     string     // that is read, of a text that is written behind it
	Completion string     // what is written; "" where the example is none
	Messages   string     // of a conversation, as JSON; "" where the example is none
	Tools      string     // that the conversation may call, as JSON; "" for none
	Switches   string     // what the template of the conversation is told beside, as JSON: enable_thinking; "" for nothing
	Read       int        // messages at the beginning that are only read; 0: of all what the assistant says is learnt
	Continued  bool       // the text goes on in another example
	Answers    []string   // any of them is right; the first is learnt
	Image      *Image     // in place of a text, or of a document's page; nil where there is none
	Recording  *Recording // in place of a text; nil where there is none
}

// Group names the group that group-level privacy counts the example to: its provider, or its user
// if there is no provider; "" if it has neither.
func (e Example) Group() string {
	if e.Provider != "" {
		return e.Provider
	}
	return e.User
}

// Set is a list of examples over one list of labels.
type Set struct {
	Name     string // the file, as it was given; "" for a set without one
	Labels   []string
	Examples []Example
	Left     string // for people: the files of a folder that are no examples, as "3 .heic, 1 ._*"; "" if there are none
}

// Pick returns the examples at the given indices, sharing the label list.
func (s *Set) Pick(indices []int) *Set {
	out := &Set{Name: s.Name, Labels: s.Labels, Examples: make([]Example, len(indices))}
	for i, at := range indices {
		out.Examples[i] = s.Examples[at]
	}
	return out
}

// Groups divides the set by Example.Group, in the order of the groups' names,
// each with the set's file and labels. An example without a group is a
// *LineError.
func (s *Set) Groups() (names []string, parts []*Set, err error) {
	at := map[string]int{}
	for _, e := range s.Examples {
		g := e.Group()
		if g == "" {
			return nil, nil, &LineError{s.Name, e.Line, errors.New("names no provider and no user, and the job protects providers")}
		}
		if _, known := at[g]; !known {
			at[g] = 0
			names = append(names, g)
		}
	}
	slices.Sort(names)
	for i, g := range names {
		at[g] = i
		parts = append(parts, &Set{Name: s.Name, Labels: s.Labels})
	}
	for _, e := range s.Examples {
		p := parts[at[e.Group()]]
		p.Examples = append(p.Examples, e)
	}
	return names, parts, nil
}

// Relabel returns the set over another label list, matched by name, so that
// a file holding only some of a job's classes agrees with the job. An example
// whose label the list does not have is a *LineError that names its file and
// line, or an error that names the recording. No labels, for a task that has none, take every example as it is.
func (s *Set) Relabel(labels []string) (*Set, error) {
	if len(labels) == 0 {
		return &Set{Name: s.Name, Examples: s.Examples}, nil
	}
	if len(s.Labels) == 0 && len(s.Examples) > 0 {
		return nil, &LineError{s.Name, s.Examples[0].Line, fmt.Errorf("has a question or no label, and the job's examples have one of the labels %.200q", labels)}
	}
	to := make([]int, len(s.Labels))
	for i, name := range s.Labels {
		to[i] = slices.Index(labels, name)
	}
	out := &Set{Name: s.Name, Labels: labels, Examples: slices.Clone(s.Examples)}
	for i := range out.Examples {
		ex := &out.Examples[i]
		if bad := ex.relabel(to); bad >= 0 {
			what := "label"
			if ex.Tags != nil {
				what = "tag"
			}
			err := fmt.Errorf("%s %q is not one of %q", what, s.Labels[bad], labels)
			if what == "label" && slices.Contains(labels, strings.TrimSpace(ex.Text)) {
				err = fmt.Errorf("the text %q is one of the job's labels, and the label %.80q is none: are the columns of texts and labels swapped?", ex.Text, s.Labels[bad])
			}
			if ex.Line == 0 && ex.Recording != nil { // of a folder or an archive
				return nil, fmt.Errorf("%s: %w", cmp.Or(ex.Recording.file, s.Name), err)
			}
			return nil, &LineError{s.Name, ex.Line, err}
		}
	}
	return out, nil
}

// Named is a Set of examples with their labels' names, numbered in alphabetical order.
func Named(name string, examples []Example, labels []string) (*Set, error) {
	if len(examples) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrEmpty)
	}
	distinct := map[string]bool{}
	for i, l := range labels {
		if l == "" || len(l) > MaxLabel || !utf8.ValidString(l) {
			return nil, fmt.Errorf("%s: label %d is %.40q, want 1 to %d bytes of text", name, i+1, l, MaxLabel)
		}
		if distinct[l] = true; len(distinct) > MaxLabels {
			return nil, fmt.Errorf("%s: more than %d distinct labels", name, MaxLabels)
		}
	}
	return byName(name, examples, labels), nil
}

// byName builds a Set from examples that carry label names: labels are
// numbered in alphabetical order, whatever order they came in.
func byName(file string, examples []Example, names []string) *Set {
	labels := slices.Clone(names)
	slices.SortFunc(labels, cmp.Compare[string])
	labels = slices.Compact(labels)
	index := make(map[string]int, len(labels))
	for i, l := range labels {
		index[l] = i
	}
	for i := range examples {
		examples[i].Label = index[names[i]]
	}
	return &Set{Name: file, Labels: labels, Examples: examples}
}
