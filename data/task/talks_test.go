//go:build !js || full

package task

import (
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/model"
)

// learntOf is what is told of each row of a conversation, and the rows' texts.
func learntOf(t *testing.T, template string, e dataset.Example) (texts, learnt []string) {
	t.Helper()
	k := talkTask(t, template, 64)
	rows, _, err := Rows(k, []dataset.Example{e})
	if err != nil {
		t.Fatal(err)
	}
	b, err := EncodeAll(k, rows)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		text, labels, _ := told(b, i)
		texts, learnt = append(texts, strings.TrimRight(text, "|")), append(learnt, labels)
	}
	return texts, learnt
}

// Generation blocks decide what is learnt, wherever they begin and end.
func TestGenerationBlocksDecide(t *testing.T) {
	const template = "{% for m in messages %}{{ m.role[0] }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content }}!{% endgeneration %}{% else %}{{ m.content }}{% endif %};{% endfor %}"
	texts, learnt := learntOf(t, template, dataset.Example{Messages: hello})
	if len(texts) != 1 || texts[0] != "u:hi;a:ho!;u:x;a:y!;" || learnt[0] != "ho!y!" {
		t.Errorf("%q, of which %q is told", texts, learnt)
	}
}

// A template that lays earlier turns out otherwise has a row for each of an assistant's turns, as it is when that is
// written.
func TestRewrittenTurnsHaveRowsOfTheirOwn(t *testing.T) {
	const template = "{% for m in messages %}{{ m.role[0] }}:{% if loop.last and m.role == 'assistant' %}(t){% endif %}{{ m.content }}|{% endfor %}{% if add_generation_prompt %}a:{% endif %}"
	texts, learnt := learntOf(t, template, dataset.Example{Messages: hello, Switches: `{"x": 1}`})
	if len(texts) != 2 || texts[0] != "u:hi|a:(t)ho" || texts[1] != "u:hi|a:ho|u:x|a:(t)y" || learnt[0] != "(t)ho|" || learnt[1] != "(t)y|" {
		t.Errorf("%q, of which %q is told", texts, learnt)
	}
	// What a reply begins with, and a conversation does not keep, is read by neither.
	const thinks = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}|{% endfor %}{% if add_generation_prompt %}a:(t){% endif %}"
	texts, learnt = learntOf(t, thinks, dataset.Example{Messages: hello})
	if len(texts) != 2 || texts[0] != "u:hi|a:ho" || learnt[0] != "ho|" || learnt[1] != "y|" {
		t.Errorf("%q, of which %q is told", texts, learnt)
	}
}

// Tools, switches and reasoning reach the template, and of a prompt in messages the completion alone is told.
func TestTalksReachTheTemplate(t *testing.T) {
	const template = "{{ tools | tojson if tools }}{{ 'T' if deep }}{% for m in messages %}{{ m.role[0] }}:{{ m.reasoning_content }}{{ m.content }}|{% endfor %}{% if add_generation_prompt %}a:{% endif %}"
	texts, learnt := learntOf(t, template, dataset.Example{Messages: `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"assistant","reasoning":"w","content":"c"}]`,
		Tools: `[{"b":1,"a":2}]`, Switches: `{"deep":true}`, Read: 2})
	if len(texts) != 1 || texts[0] != `[{"b": 1, "a": 2}]Tu:a|a:b|a:wc` || learnt[0] != "wc|" {
		t.Errorf("%q, of which %q is told", texts, learnt)
	}
	for want, e := range map[string]dataset.Example{
		"lays no tools out":        {Messages: hello, Tools: `[{"a":1}]`},
		`message 2 has "weight"`:   {Messages: `[{"role":"user","content":"a"},{"role":"assistant","content":"b","weight":0}]`},
		`message 2 has "thinking`:  {Messages: `[{"role":"user","content":"a"},{"role":"assistant","content":"b","thinking":"c"}]`},
		"which is given otherwise": {Messages: hello, Switches: `{"messages":[]}`},
	} {
		_, _, err := Rows(talkTask(t, marked, 64), []dataset.Example{e})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Where a template has no branch for a reply's beginning, what its turns begin with is added: else a model writes that.
func TestRepliesBeginWithoutABranch(t *testing.T) {
	for template, want := range map[string]string{
		"{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}":                                                     "<user>hi</><assistant>",
		"{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}": "<user>hi</><assistant>",
		"{% for m in messages %}{{ '[I] ' + m.content + ' [/I]' if m.role == 'user' else ' ' + m.content }}{% endfor %}":          "[I] hi [/I]",
		"{% for m in messages %}{{ m.content }}{% endfor %}{{ raise_exception('no') if messages | length > 1 }}":                  "hi",
	} {
		base := tiny.Decoder(t, 8, 64)
		base.Config.Decoder.Chat = model.Chat{Template: template}
		talk, err := NewChatTemplate(base)
		if err != nil {
			t.Fatal(err)
		}
		got, err := talk.Text(t.Context(), []byte(`[{"role":"user","content":"hi"}]`), nil, nil, true, time.Time{})
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", template, got, err, want)
		}
	}
	_, learnt := learntOf(t, "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}|{% endfor %}", dataset.Example{Messages: hello})
	if learnt[0] != "ho|y|" {
		t.Errorf("%q is told", learnt)
	}
}

// A reply is what is to be written, with what is read before it as it is in training: of a conversation the last.
func TestReplies(t *testing.T) {
	rewrites := "{% for m in messages %}{{ m.role[0] }}:{{ '(t)' if loop.last and m.role == 'assistant' }}{{ m.content }}<|endoftext|>{% endfor %}{% if add_generation_prompt %}a:{% endif %}"
	for name, c := range map[string]struct {
		template string
		sequence int
		e        dataset.Example
		before   string
		right    string
	}{
		"conversation": {marked, 64, dataset.Example{Messages: hello}, "u:hi<|endoftext|>a:ho<|endoftext|>u:x<|endoftext|>a:", "y"},
		"cut":          {marked, 10, dataset.Example{Messages: hello}, "o<|endoftext|>u:x<|endoftext|>a:", "y"},
		"not the last": {marked, 64, dataset.Example{Messages: `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`}, "u:a<|endoftext|>a:", "b"},
		"rewritten":    {rewrites, 64, dataset.Example{Messages: hello}, "u:hi<|endoftext|>a:ho<|endoftext|>u:x<|endoftext|>a:", "(t)y"},
		"prompt":       {marked, 64, dataset.Example{Prompt: "p", Completion: "c"}, "p", "c"},
		"text":         {marked, 64, dataset.Example{Text: "p"}, "", ""},
	} {
		k := talkTask(t, c.template, c.sequence).(*causal)
		ids, right, err := k.Reply(&c.e)
		var before strings.Builder
		for _, id := range ids {
			if k.ends.Has(id) {
				before.WriteString("<|endoftext|>")
			} else {
				before.WriteString(k.Text([]int32{id}))
			}
		}
		if err != nil || before.String() != c.before || right != c.right {
			t.Errorf("%s: %q before %q, %v", name, before.String(), right, err)
		}
	}
	long := dataset.Example{Messages: `[{"role":"user","content":"a"},{"role":"assistant","content":"` + strings.Repeat("b", 40) + `"}]`}
	if _, _, err := talkTask(t, marked, 20).(*causal).Reply(&long); err == nil || !strings.Contains(err.Error(), "raise adapter.sequence") {
		t.Errorf("a reply that does not fit: %v", err)
	}
	if _, _, err := talkTask(t, "", 20).(*causal).Reply(&long); err == nil {
		t.Error("a base without a template replies")
	}
}
