package generation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	_ "github.com/gomlx/compute/gobackend" // the reference

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// learned is a model of bytes that has learnt to write "dog. " behind "cat".
func learned(t *testing.T) *Model {
	t.Helper()
	base := tiny.Decoder(t, 16, 64)
	base.Config.Decoder.Chat.Template = "{% for m in messages %}{{ m.content }}{% endfor %}{% if not add_generation_prompt %}.{% endif %}"
	m := model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull, Task: model.TaskCausal}
	s := nn.StepSpec{Config: base.Config, Method: m, Spec: training.Spec{Batch: 1, Optimizer: training.AdamW}, Sequence: 16}
	l, err := s.Layout()
	if err != nil {
		t.Fatal(err)
	}
	k, err := task.New(base, l, s.Sequence)
	if err != nil {
		t.Fatal(err)
	}
	example := []dataset.Example{{Prompt: "cat", Completion: "dog. é"}}
	b, err := task.EncodeAll(k, example)
	if err != nil {
		t.Fatal(err)
	}
	step, err := nn.NewTrainer(s, base)
	if err != nil {
		t.Fatal(err)
	}
	a := model.NewAdapter(l, 1)
	start := a.Slice(0)
	delta, losses, err := step.Train(t.Context(), start, slices.Repeat([]task.Batch{b}, 60), 0.02)
	if err != nil || losses[59] > 0.05 {
		t.Fatal(losses, err)
	}
	for i := range delta {
		delta[i] += start[i]
	}
	if err := a.SetSlice(0, delta); err != nil {
		t.Fatal(err)
	}
	ck := &model.Checkpoint{CheckpointInfo: model.CheckpointInfo{Job: "pets", Seq: s.Sequence, Method: m}, Base: base, Adapter: a}
	g, err := Open(nil, ck, 0, 24)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestWrite(t *testing.T) {
	m := learned(t)
	plain := Sampling{TopP: 1, Repetition: 1}
	for name, c := range map[string]struct {
		r    Request
		want Text
	}{
		"to its end":   {Request{Prompt: "cat", Most: 20, Sampling: plain}, Text{"dog. é", EndStop, 3, 7}},
		"cut":          {Request{Prompt: "cat", Most: 2, Sampling: plain}, Text{"do", EndLength, 3, 2}},
		"a character":  {Request{Prompt: "cat", Most: 6, Sampling: plain}, Text{"dog. \uFFFD", EndLength, 3, 6}},
		"stopped":      {Request{Prompt: "cat", Most: 20, Sampling: plain, Stops: []string{"x", ". "}}, Text{"dog", EndStop, 3, 5}},
		"nearly":       {Request{Prompt: "cat", Most: 20, Sampling: plain, Stops: []string{"g.x"}}, Text{"dog. é", EndStop, 3, 7}},
		"full context": {Request{Prompt: strings.Repeat("cat", 7) + "at", Most: 20, Sampling: plain}, Text{"", EndLength, 23, 1}},
	} {
		var parts []string
		got, err := m.Write(t.Context(), c.r, func(part string) error {
			parts = append(parts, part)
			return nil
		})
		if name == "full context" {
			c.want.Text, c.want.Tokens, c.want.Ended = got.Text, got.Tokens, got.Ended // whatever it writes there
			if got.Tokens > 1 {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if err != nil || got != c.want || strings.Join(parts, "") != got.Text {
			t.Errorf("%s: %+v in %q, %v, want %+v", name, got, parts, err, c.want)
		}
	}
	if _, err := m.Write(t.Context(), Request{Prompt: strings.Repeat("x", 24), Most: 1, Sampling: plain}, nil); !errors.Is(err, ErrPrompt) {
		t.Error(err)
	}
	if _, err := m.Write(t.Context(), Request{Most: 1, Sampling: plain}, nil); !errors.Is(err, ErrPrompt) {
		t.Error(err)
	}
	broken := errors.New("nobody reads on")
	if got, err := m.Write(t.Context(), Request{Prompt: "cat", Most: 9, Sampling: plain}, func(string) error { return broken }); !errors.Is(err, broken) || got.Tokens != 1 {
		t.Error(got, err)
	}
	for _, bad := range []Request{{Prompt: "cat", Sampling: plain}, {Prompt: "cat", Most: 1}, {Prompt: "cat", Most: 1, Sampling: plain, Stops: []string{""}}} {
		if _, err := m.Write(t.Context(), bad, nil); err == nil {
			t.Errorf("%+v", bad)
		}
	}
}

func TestCompletions(t *testing.T) {
	m := learned(t)
	h := local(Handler(m, Request{Most: 20, Sampling: Sampling{TopP: 1, Repetition: 1}}))
	ask := func(method, path, body string, headers ...string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:9"+path, strings.NewReader(body))
		for i := 0; i < len(headers); i += 2 {
			if headers[i] == "Host" {
				req.Host = headers[i+1]
			}
			req.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w
	}
	w := ask("POST", "/v1/completions", `{"prompt": "cat", "model": "any"}`)
	var whole answer
	if err := json.Unmarshal(w.Body.Bytes(), &whole); err != nil || w.Code != http.StatusOK || *whole.Choices[0].Text != "dog. é" || *whole.Choices[0].Finish != EndStop ||
		*whole.Usage != (usage{3, 7, 10}) || whole.Model != "pets" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = ask("POST", "/v1/completions", `{"prompt": "cat", "stream": true, "stop": ["."]}`)
	var text strings.Builder
	for line := range bytes.Lines(w.Body.Bytes()) {
		data, ok := bytes.CutPrefix(line, []byte("data: {"))
		if !ok {
			continue
		}
		var part answer
		if err := json.Unmarshal(append([]byte("{"), data...), &part); err != nil {
			t.Fatal(err)
		}
		text.WriteString(*part.Choices[0].Text)
	}
	if text.String() != "dog" || !strings.HasSuffix(w.Body.String(), "\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n") || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("%s", w.Body)
	}
	if w = ask("GET", "/v1/models", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"id":"pets"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for want, c := range map[string][]string{
		"prompt is missing": {"/v1/completions", `{}`},
		"not a JSON object": {"/v1/completions", `{"prompt": 7}`},
		"n is 2":            {"/v1/completions", `{"prompt": "a", "n": 2}`},
		"echo is true":      {"/v1/completions", `{"prompt": "a", "echo": true}`},
		"logit_bias is":     {"/v1/completions", `{"prompt": "a", "logit_bias": {"50256": -100}}`},
		"response_format is {\"type\":\"json_object\"}":   {"/v1/completions", `{"prompt": "a", "response_format": {"type": "json_object"}}`},
		"presence_penalty is 0.5, which is not supported": {"/v1/completions", `{"prompt": "a", "presence_penalty": 0.5}`},
		"frequency_penalty is -1":                         {"/v1/completions", `{"prompt": "a", "frequency_penalty": -1}`},
		"tool_choice is":                                  {"/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "tool_choice": {"type": "function", "function": {"name": "f"}}}`},
		"logprobs is 3":                                   {"/v1/completions", `{"prompt": "a", "logprobs": 3}`},
		"best_of is 2":                                    {"/v1/completions", `{"prompt": "a", "best_of": 2}`},
		"is not known here: leave it out":                 {"/v1/completions", `{"prompt": "a", "grammar": "x"}`},
		"stop must":                                       {"/v1/completions", `{"prompt": "a", "stop": 1}`},
		"temperature":                                     {"/v1/completions", `{"prompt": "a", "temperature": -1}`},
		"tokens":                                          {"/v1/completions", `{"prompt": "` + strings.Repeat("a", 30) + `"}`},
		"messages are":                                    {"/v1/chat/completions", `{}`},
		"has no role":                                     {"/v1/chat/completions", `{"messages": [{"content": "a"}]}`},
		"which is given otherwise":                        {"/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"messages": []}}`},
		"want 1 or more":                                  {"/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "max_completion_tokens": 0}`},
		"and no prompt":                                   {"/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "prompt": "a"}`},
		"of this machine":                                 {"/v1/completions", `{"prompt": "a"}`, "Host", "example.org"},
		"of this machine ":                                {"/v1/completions", `{"prompt": "a"}`, "Origin", "http://127.0.0.1:9"},
	} {
		w := ask("POST", c[0], c[1], c[2:]...)
		var said struct{ Error struct{ Message string } }
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code < 400 || w.Code >= 500 || !strings.Contains(said.Error.Message, strings.TrimSpace(want)) {
			t.Errorf("%q: %d %s", c, w.Code, w.Body)
		}
	}
	// What asks for nothing is no reason to refuse: programs name it.
	w = ask("POST", "/v1/completions", `{"prompt": "cat", "n": 1, "logit_bias": {}, "presence_penalty": 0, "frequency_penalty": 0.0, "logprobs": null, "echo": false,
		"best_of": 1, "response_format": {"type": "text"}, "tool_choice": "auto", "user": "me"}`)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "dog. é") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Conversations are laid out by the base's template, and answered whole and in parts as OpenAI's
// programs read them.
func TestTalks(t *testing.T) {
	m := learned(t)
	h := Handler(m, Request{Most: 20, Sampling: Sampling{TopP: 1, Repetition: 1}})
	ask := func(more string) string {
		w := httptest.NewRecorder()
		body := `{"messages": [{"role": "system", "content": "c"}, {"role": "user", "content": "at"}], "model": "any"` + more + `}`
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", strings.NewReader(body)))
		if w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		return w.Body.String()
	}
	var whole struct {
		Object  string
		Choices []struct {
			Message struct{ Role, Content string }
			Finish  string `json:"finish_reason"`
		}
		Usage usage
	}
	if err := json.Unmarshal([]byte(ask("")), &whole); err != nil || whole.Object != "chat.completion" || len(whole.Choices) != 1 ||
		whole.Choices[0].Message.Role != "assistant" || whole.Choices[0].Message.Content != "dog. é" || whole.Choices[0].Finish != EndStop || whole.Usage != (usage{3, 7, 10}) {
		t.Errorf("%+v, %v", whole, err)
	}
	text, roles, used := "", "", 0
	for line := range strings.Lines(ask(`, "stream": true, "stream_options": {"include_usage": true}`)) {
		data, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		var part struct {
			Object  string
			Choices []struct {
				Delta struct{ Role, Content string }
			}
			Usage *usage
		}
		if err := json.Unmarshal([]byte("{"+data), &part); err != nil || part.Object != "chat.completion.chunk" {
			t.Fatalf("%s: %v", line, err)
		}
		for _, c := range part.Choices {
			text, roles = text+c.Delta.Content, roles+c.Delta.Role
		}
		if part.Usage != nil {
			used = part.Usage.Total
		}
	}
	if text != "dog. é" || roles != "assistant" || used != 10 {
		t.Errorf("%q by %q, %d tokens", text, roles, used)
	}
	m.talk, m.silent = nil, errors.New("the base has no template")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", strings.NewReader(`{"messages": [{"role": "user", "content": "a"}]}`)))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "has no template") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// It serves this machine alone, and ends with its context.
func TestServe(t *testing.T) {
	m := learned(t)
	r := Request{Most: 20, Sampling: Sampling{TopP: 1, Repetition: 1}}
	for _, address := range []string{"0.0.0.0:0", "example.org:80", ":0", "127.0.0.1"} {
		if err := Serve(t.Context(), m, address, r, func(string) error { t.Error(address); return nil }); err == nil {
			t.Errorf("%s is served", address)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := Serve(ctx, m, "127.0.0.1:0", r, func(url string) error {
		go func() {
			res, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"cat"}`))
			if err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("%+v %v", res, err)
			}
			if err == nil {
				_ = res.Body.Close()
			}
			cancel()
		}()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
