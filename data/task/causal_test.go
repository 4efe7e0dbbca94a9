//go:build !js || full

package task

import (
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/model"
)

const endOfText = 256 // of tiny.Decoder, whose other tokens are bytes

func causalTask(t *testing.T, sequence int) Task {
	t.Helper()
	base := tiny.Decoder(t, 8, 64)
	l, err := model.NewLayout(base.Config, model.Method{RMax: 1, Alpha: 1, Task: model.TaskCausal}, 0)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(base, l, sequence)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// told spells a row: its tokens, and what is told where.
func told(b Batch, row int) (tokens, labels string, at []int) {
	n, _ := b.Column(Tokens)
	spell := func(ids []int32) string {
		var s strings.Builder
		for _, id := range ids {
			if id == endOfText {
				s.WriteByte('|')
			} else {
				s.WriteByte(byte(id))
			}
		}
		return s.String()
	}
	at, next := MaskedPlaces(b, row)
	return spell(n.I32[row*n.Size() : (row+1)*n.Size()]), spell(next), at
}

func TestCausalEncode(t *testing.T) {
	k := causalTask(t, 8)
	for _, c := range []struct {
		e              dataset.Example
		tokens, labels string
		first          int // place of the first label: the token before it
	}{
		{dataset.Example{Text: "abc"}, "abc|||||", "bc|", 0},
		{dataset.Example{Text: "abcdefgh, and on", Label: 3}, "abcdefgh", "bcdefgh", 0},
		{dataset.Example{Text: "abc", Continued: true}, "abc|||||", "bc", 0},
		{dataset.Example{Prompt: "ab", Completion: "cd"}, "abcd||||", "cd|", 1},
		{dataset.Example{Prompt: "0123456789", Completion: "cd"}, "56789cd|", "cd|", 4},
		{dataset.Example{Words: []string{"a", "b"}}, "a b|||||", " b|", 0},
	} {
		b, err := EncodeAll(k, []dataset.Example{c.e, c.e})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range b {
			if err := v.Check(2); err != nil {
				t.Error(err)
			}
		}
		tokens, labels, at := told(b, 1)
		if tokens != c.tokens || labels != c.labels || len(at) != len(labels) {
			t.Errorf("%+v: %q, of which %q is told", c.e, tokens, labels)
		}
		places := b.Int32(Places)[b[1].Size():]
		for i := range labels {
			if int(places[i]) != c.first+i {
				t.Errorf("%+v: label %d is told at %d, want %d", c.e, i, places[i], c.first+i)
			}
		}
		if truths := k.(Labeller).Truths(&c.e, b, 1); len(truths) != len(labels) || truths[0][0] != int(labels[0]) {
			t.Errorf("%+v: truths %v", c.e, truths)
		}
	}
	for name, bad := range map[string]dataset.Example{
		"no tokens":         {Text: ""},
		"adapter.sequence":  {Prompt: "a", Completion: "much too long"},
		"a prompt has no t": {Prompt: "", Completion: "b"},
		"image":             {Image: &dataset.Image{}},
	} {
		if _, err := EncodeAll(k, []dataset.Example{bad}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if !Accepts(model.TaskCausal, dataset.FormPrompts) || For(dataset.FormPrompts) != model.TaskCausal || Accepts(model.TaskClassify, dataset.FormPrompts) {
		t.Error("which task prompts are for")
	}
}

// A long text is parts that together are it, and only the last ends.
func TestCausalSplit(t *testing.T) {
	k := causalTask(t, 12)
	text := "one two\nthree  four five sixteenletterss x\n"
	parts, err := k.(Splitter).Split(&dataset.Example{Text: text, User: "u"})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, p := range parts {
		all = append(all, p.Text)
		if p.Continued != (i < len(parts)-1) || p.User != "u" {
			t.Errorf("part %d: %+v", i, p)
		}
		if len(p.Text) > 11 && !strings.Contains(p.Text, "sixteenletterss") {
			t.Errorf("part %d has %d tokens: %q", i, len(p.Text), p.Text)
		}
	}
	if strings.Join(all, "") != text || len(parts) < 4 {
		t.Errorf("%q", all)
	}
	short := dataset.Example{Prompt: "a long prompt that is cut", Completion: "b"}
	if parts, err = k.(Splitter).Split(&short); err != nil || len(parts) != 1 || parts[0].Prompt != short.Prompt {
		t.Errorf("%+v: %v", parts, err)
	}
	if wordEnd("  a b") != 3 || wordEnd("ab") != 2 || wordEnd("  ") != 2 {
		t.Error("where words end")
	}
}
