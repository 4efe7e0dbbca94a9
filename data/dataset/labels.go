package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Form is the kind of examples, which decides the tasks that may learn from them.
type Form string

const (
	FormTexts       Form = "texts"       // each with one label
	FormLists       Form = "lists"       // texts, each with any number of labels
	FormWords       Form = "words"       // each word with a label
	FormPictures    Form = "pictures"    // each with one label
	FormRecordings  Form = "recordings"  // each with one label
	FormTranscripts Form = "transcripts" // recordings, each with what is said in it
	FormQuestions   Form = "questions"   // about documents
	FormPrompts     Form = "prompts"     // with what is to be written behind them
	FormTalks       Form = "conversations"
	FormBare        Form = "unlabelled"
)

// Description describes the form to people: "it holds ...".
func (f Form) Description() string {
	return map[Form]string{FormTexts: "texts with a label each", FormLists: "texts with a list of labels each",
		FormWords: "words with labels", FormPictures: "images", FormRecordings: "recordings", FormTranscripts: "recordings with what is said in them", FormQuestions: "questions about documents",
		FormPrompts: "prompts with completions", FormTalks: "conversations", FormBare: "texts without labels"}[f]
}

// Textless reports whether examples have no text.
func (f Form) Textless() bool {
	return f == FormPictures || f == FormRecordings || f == FormTranscripts
}

// Form returns the example's form.
func (e *Example) Form() Form {
	switch {
	case e.Image != nil && e.Text == "": // else it is a document's page
		return FormPictures
	case e.Recording != nil && e.Text != "":
		return FormTranscripts
	case e.Recording != nil:
		return FormRecordings
	case e.Tags != nil:
		return FormWords
	case e.Labels != nil:
		return FormLists
	case e.Question != "":
		return FormQuestions
	case e.Completion != "":
		return FormPrompts
	case e.Messages != "":
		return FormTalks
	}
	return FormTexts
}

// Form returns the form of the first example; FormBare for a text in a set without labels.
func (s *Set) Form() Form {
	if len(s.Examples) == 0 {
		return FormBare
	}
	f := s.Examples[0].Form()
	if f == FormTexts && len(s.Labels) == 0 {
		return FormBare
	}
	return f
}

// Classes returns all labels of an example, or of its words: indices into Set.Labels, which the
// caller must not change. A question has none, or a number that stands for none.
func (e *Example) Classes() []int {
	switch e.Form() {
	case FormWords:
		return e.Tags
	case FormLists:
		return e.Labels
	}
	return []int{e.Label}
}

// relabel numbers the labels by to; bad is one that it has no number for, or -1.
func (e *Example) relabel(to []int) (bad int) {
	list := slices.Clone(e.Classes())
	for i, c := range list {
		if to[c] < 0 {
			return c
		}
		list[i] = to[c]
	}
	switch e.Form() {
	case FormWords:
		e.Tags = list
	case FormLists:
		slices.Sort(list)
		e.Labels = list
	default:
		e.Label = list[0]
	}
	return -1
}

// listed is the list of labels that a JSON object has in place of one: under the label's
// own key, or under "labels"; nil where it has none.
func listed(label, labels json.RawMessage) ([]string, error) {
	raw := label
	if len(raw) == 0 || string(raw) == "null" {
		raw = labels
	}
	if !bytes.HasPrefix(raw, []byte("[")) {
		return nil, nil
	}
	names := []string{}
	var each []json.RawMessage
	if err := json.Unmarshal(raw, &each); err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	for _, r := range each {
		n, err := scalar("labels", r)
		if err != nil {
			return nil, err
		}
		names = append(names, n)
	}
	return names, nil
}

// checkLabels refuses what is not a list of labels.
func (l labelled) checkLabels() error {
	if len(l.Labels) > MaxLabels {
		return fmt.Errorf("%d labels, the limit is %d", len(l.Labels), MaxLabels)
	}
	for i, n := range l.Labels {
		if n == "" || len(n) > MaxLabel || !utf8.ValidString(n) {
			return fmt.Errorf("labels: number %d is %.40q, want 1 to %d bytes of text", i+1, n, MaxLabel)
		}
		if slices.Contains(l.Labels[:i], n) {
			return fmt.Errorf("labels: %.40q occurs twice", n)
		}
	}
	if !utf8.ValidString(l.Text) || !utf8.ValidString(l.User) || !utf8.ValidString(l.Provider) {
		return errNotUTF8
	}
	return nil
}
