//go:build !js || full

package task

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/model"
)

// marked is a template that ends each turn with the base's special token.
const marked = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}<|endoftext|>{% endfor %}{% if add_generation_prompt %}a:{% endif %}"

func talkTask(t *testing.T, template string, sequence int) Task {
	t.Helper()
	base := tiny.Decoder(t, 8, 64)
	base.Config.Decoder.Chat.Template = template
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

const hello = `[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}, {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]`

// What assistants say is told, with what ends their turns; a long conversation loses its
// beginning.
func TestConversationsAreLearnt(t *testing.T) {
	for sequence, want := range map[int][2]string{
		22: {"u:hi|a:ho|u:x|a:y|||||", "ho|y|"},
		10: {"|u:x|a:y||", "y|"},
		9:  {"|u:x|a:y|", "y|"},
	} {
		if sequence == 10 {
			want = [2]string{"o|u:x|a:y|", "|y|"}
		}
		k := talkTask(t, marked, sequence)
		b, err := EncodeAll(k, []dataset.Example{{Text: "a"}, {Messages: hello}})
		if err != nil {
			t.Fatal(err)
		}
		tokens, labels, at := told(b, 1)
		if tokens != want[0] || labels != want[1] || len(at) != len(labels) {
			t.Errorf("%d: %q, of which %q is told", sequence, tokens, labels)
		}
		for i, place := range at {
			_ = i
			if place < 0 || place >= sequence {
				t.Errorf("a label is told at %d", place)
			}
		}
		if rows, _, err := Rows(k, []dataset.Example{{Messages: hello}}); err != nil || len(rows) != 1 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	}
}

func TestConversationsThatAreNotLearnt(t *testing.T) {
	for want, c := range map[string]struct{ template, messages string }{
		"no template of conversations": {"", hello},
		"otherwise once others follow": {"{% for m in messages %}{{ m.role[0] }}:{{ m.content if loop.last }}|{% endfor %}{% if add_generation_prompt %}a:{% endif %}", hello},
		"no message is an assistant's": {marked, `[{"role": "user", "content": "hi"}]`},
		"raise adapter.sequence":       {marked, `[{"role": "assistant", "content": "hi"}, {"role": "user", "content": "` + strings.Repeat("x", 40) + `"}]`},
		"the template refuses: never":  {"{{ raise_exception('never') }}", hello},
		"the base's template":          {"{% if %}", hello},
		"steps":                        {"{% for i in range(4000) %}{% for j in range(4000) %}{% endfor %}{% endfor %}", hello},
		"has no role":                  {marked, `[{"content": "hi"}]`},
		"a list of at least one":       {marked, `{"role": "user"}`},
		"limit is 256":                 {marked, "[" + strings.Repeat(`{"role":"user","content":""},`, 256) + `{"role":"assistant","content":""}]`},
	} {
		k := talkTask(t, c.template, 16)
		if _, err := EncodeAll(k, []dataset.Example{{Messages: c.messages}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A conversation that is gone on with has the beginning of a turn, tools and the date.
func TestTalkText(t *testing.T) {
	base := tiny.Decoder(t, 8, 64)
	base.Config.Decoder.Chat = model.Chat{Template: marked + "{{ tools | tojson }}{{ strftime_now('%Y') }}{{ bos_token }}", Begin: "<s>"}
	talk, err := NewChatTemplate(base)
	if err != nil {
		t.Fatal(err)
	}
	got, err := talk.Text(t.Context(), []byte(`[{"role": "user", "content": "hi"}]`), []byte(`[{"b": 1, "a": 2}]`), nil, true, time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC))
	if want := `u:hi<|endoftext|>a:[{"b": 1, "a": 2}]2031<s>`; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if ids := talk.Tokens("a<|endoftext|>b"); len(ids) != 3 || ids[1] != endOfText {
		t.Errorf("%v", ids)
	}
	if _, err := talk.Text(t.Context(), []byte(`[]`), nil, nil, true, time.Time{}); !errors.Is(err, ErrConversation) {
		t.Error(err)
	}
	if _, err := talk.Text(t.Context(), []byte(hello), []byte(`[`), nil, true, time.Time{}); !errors.Is(err, ErrConversation) {
		t.Error(err)
	}
}
