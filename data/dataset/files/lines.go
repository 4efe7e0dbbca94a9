// Package files writes sets as files that dataset.Load reads: a line an example, and pictures of pages beside them.
//
//	err := files.WriteJSONLines("invoices.jsonl", set)
package files

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/data/dataset"
)

// line is a line of a data file: a text with its label, a document with a question, a prompt or a conversation.
type line struct {
	Text     string      `json:"text,omitempty"`
	Label    string      `json:"label,omitempty"`
	Words    []string    `json:"words,omitempty"`
	Boxes    [][4]uint16 `json:"boxes,omitempty"`
	Question string      `json:"question,omitempty"`
	Key      string      `json:"key,omitempty"`
	Answers  []string    `json:"answers,omitempty"`
	Asked    []asked     `json:"questions,omitempty"`
	Image    string      `json:"image,omitempty"`
	Source   string      `json:"source,omitempty"`
	User     string      `json:"user,omitempty"`
	Provider string      `json:"provider,omitempty"`

	Prompt     string          `json:"prompt,omitempty"`
	Completion string          `json:"completion,omitempty"`
	Messages   json.RawMessage `json:"messages,omitempty"`
	Tools      json.RawMessage `json:"tools,omitempty"`
	Switches   json.RawMessage `json:"chat_template_kwargs,omitempty"`
}

// asked is a question of several about one document.
type asked struct {
	Question string   `json:"question"`
	Key      string   `json:"key,omitempty"`
	Answers  []string `json:"answers,omitempty"`
}

// WriteJSONLines writes a set as a data file, what [dataset.Load] reads: an example a line, but
// questions that follow each other and share a document, and its words' memory, in one. Pages have
// files in its folder or below it.
func WriteJSONLines(path string, set *dataset.Set) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for at := 0; at < len(set.Examples); at++ {
		ex := set.Examples[at]
		l := line{Source: ex.Source, User: ex.User, Provider: ex.Provider}
		if ex.Question != "" {
			l.Words, l.Boxes, l.Question, l.Key, l.Answers = ex.Words, ex.Boxes, ex.Question, ex.Key, ex.Answers
			if ex.Image != nil {
				if l.Image, err = filepath.Rel(filepath.Dir(path), ex.Image.File()); err != nil || ex.Image.File() == "" || !filepath.IsLocal(l.Image) {
					return fmt.Errorf("%s: the page of document %d has the file %q, want one in its folder", path, at+1, ex.Image.File())
				}
				l.Image = filepath.ToSlash(l.Image)
			}
			for at+1 < len(set.Examples) && len(l.Asked) < dataset.MaxQuestions-1 && shareDocument(ex, set.Examples[at+1]) {
				if len(l.Asked) == 0 {
					l.Question, l.Key, l.Answers, l.Asked = "", "", nil, []asked{{ex.Question, ex.Key, ex.Answers}}
				}
				at++
				l.Asked = append(l.Asked, asked{set.Examples[at].Question, set.Examples[at].Key, set.Examples[at].Answers})
			}
		} else if ex.Completion != "" {
			l.Prompt, l.Completion = ex.Prompt, ex.Completion
		} else if ex.Messages != "" {
			if ex.Read > 0 || ex.Continued {
				return fmt.Errorf("%s: conversation %d is a part of one", path, at+1)
			}
			l.Messages, l.Tools, l.Switches = json.RawMessage(ex.Messages), json.RawMessage(ex.Tools), json.RawMessage(ex.Switches)
		} else {
			l.Text, l.Label = ex.Text, set.Labels[ex.Label]
		}
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return w.Flush()
}

// shareDocument reports whether two questions are about the same document, in the same
// memory, of the same user.
func shareDocument(e, o dataset.Example) bool {
	same := len(e.Words) > 0 && len(e.Words) == len(o.Words) && &e.Words[0] == &o.Words[0]
	return same && o.Question != "" && e.Image == o.Image &&
		e.User == o.User && e.Provider == o.Provider && e.Source == o.Source
}
