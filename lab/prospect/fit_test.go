package prospect

import (
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
)

// A row is as long as what is read of it and told, whether it is a prompt or a conversation.
func TestLongestRow(t *testing.T) {
	b := tiny.Decoder(t, 8, 64)
	b.Config.Decoder.Chat.Template = "{% for m in messages %}{{ m.role[0] }}{{ m.content }}<|endoftext|>{% endfor %}{% if add_generation_prompt %}a{% endif %}"
	for want, e := range map[int]dataset.Example{
		6:  {Prompt: "abc", Completion: "de"},                                                              // and the end
		10: {Messages: `[{"role":"user","content":"abc"},{"role":"assistant","content":"def"}]`},           // u, a and two ends
		64: {Messages: `[{"role":"assistant","content":"` + strings.Repeat("a", 100) + `"}]`},              // as many as the base has positions
		7:  {Messages: `[{"role":"assistant","content":"abcde"},{"role":"user","content":"not learned"}]`}, // behind the last reply
	} {
		if got, err := longestRow(b, &dataset.Set{Examples: []dataset.Example{{Prompt: "a", Completion: "b"}, e}}); err != nil || got != want {
			t.Errorf("%+v has %d tokens, %v; want %d", e, got, err, want)
		}
	}
	b.Config.Decoder.Chat.Template = ""
	if _, err := longestRow(b, &dataset.Set{Examples: []dataset.Example{{Messages: `[{"role":"assistant","content":"a"}]`, Line: 7}}}); err == nil {
		t.Error("a base without a template lays a conversation out")
	}
}

// The job of a large decoder is fitted to it, and one of a small base keeps the defaults.
func TestFit(t *testing.T) {
	small := Fleet{Name: "calls", Base: "some/model", Devices: 3, Examples: 20, Rounds: 3, From: "nobody"}
	texts := &dataset.Set{Examples: []dataset.Example{{Text: "a"}}}
	talks := &dataset.Set{Examples: []dataset.Example{{Prompt: strings.Repeat("a", 30), Completion: "b"}}}
	b := tiny.Decoder(t, 8, 64)
	if err := small.Fit(b, texts); err != nil || small.fitted != nil {
		t.Errorf("%v, %v", small.fitted, err)
	}
	if err := small.Fit(b, talks); err != nil || len(small.fitted) != 1 || small.fitted[0].value != 40 {
		t.Errorf("%v, %v", small.fitted, err)
	}
	b.Config.VocabSize, b.Config.HiddenSize = 49152, 576
	fit := func(from string) job.Job {
		t.Helper()
		f := small
		if f.From = from; f.Fit(b, talks) != nil || len(f.fitted) < 2 {
			t.Fatal("it is not fitted")
		}
		text, err := f.File(8)
		if err != nil || strings.Count(text, "\n") > mostLines {
			t.Fatalf("%v: %s", err, text)
		}
		j, err := job.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		_, keys, err := f.Job(0, f.adversary(), "")
		if err == nil {
			_, err = f.Settings("x.jsonl", keys, 1, 0)
		}
		if err != nil {
			t.Error(err)
		}
		return j
	}
	if j := fit("nobody"); j.Adapter.Sequence != 40 || j.BaseFormat != "nf4" || strings.Join(j.Adapter.Targets, "") != "all-linear" || j.Training.LearningRate != 0.001 {
		t.Errorf("%+v", j)
	}
	if j := fit("coordinator"); j.Adapter.Targets != nil {
		t.Errorf("noise is added to %v", j.Adapter.Targets)
	}
}
