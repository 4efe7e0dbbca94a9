package completions

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/gomlx/compute/gobackend" // the reference

	"github.com/starling-fl/starling/internal/app/generation"
	"github.com/starling-fl/starling/internal/testkit/pets"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// plain is what requests of the tests do not name.
var plain = generation.Request{Most: 20, Sampling: generation.Sampling{TopP: 1, Repetition: 1}}

// learned is a model of bytes that writes "dog. é" behind "cat", and lays conversations out.
func learned(t *testing.T) *generation.Model {
	t.Helper()
	m, err := generation.Open(nil, pets.Learned(t), 0, 24)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ask posts a request, with headers by pairs.
func ask(t *testing.T, h http.Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
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

// told is an answer as programs read it.
type told struct {
	Object  string
	Model   string
	Choices []struct {
		Index          int
		Text           string
		Message, Delta struct{ Role, Content string }
		Logprobs       *struct {
			Tokens  []string
			Logs    []*float64           `json:"token_logprobs"`
			Top     []map[string]float64 `json:"top_logprobs"`
			Offsets []int                `json:"text_offset"`
			Content []struct {
				Token   string
				Logprob float64
				Bytes   []byte
				Top     []struct{ Token string } `json:"top_logprobs"`
			}
		}
		Finish string `json:"finish_reason"`
	}
	Usage tally
	Error *struct{ Message, Type, Param string }
}

func read(t *testing.T, data []byte) (a told) {
	t.Helper()
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return a
}

// events are a stream's.
func events(t *testing.T, w *httptest.ResponseRecorder) (all []told) {
	t.Helper()
	if w.Header().Get("Content-Type") != "text/event-stream" || !strings.HasSuffix(w.Body.String(), "\n\ndata: [DONE]\n\n") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for line := range bytes.Lines(w.Body.Bytes()) {
		if data, ok := bytes.CutPrefix(line, []byte("data: {")); ok {
			all = append(all, read(t, append([]byte("{"), data...)))
		}
	}
	return all
}

func TestCompletions(t *testing.T) {
	h := newServer(learned(t), plain, Config{2, time.Hour}).handler()
	w := ask(t, h, "/v1/completions", `{"prompt": "cat", "model": "any"}`)
	if a := read(t, w.Body.Bytes()); w.Code != http.StatusOK || len(a.Choices) != 1 || a.Choices[0].Text != "dog. é" || a.Choices[0].Finish != generation.EndStop ||
		a.Usage != (tally{3, 7, 10}) || a.Model != "pets" || a.Choices[0].Logprobs != nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	// Several prompts, each twice.
	w = ask(t, h, "/v1/completions", `{"prompt": [[99, 97, 116], [97]], "max_tokens": 1, "n": 2, "seed": 3, "best_of": 2}`)
	a := read(t, w.Body.Bytes())
	if len(a.Choices) != 4 || a.Choices[0].Text != "d" || a.Choices[1].Text != "d" || a.Choices[3].Index != 3 || a.Usage.Prompt != 4 || a.Usage.Completion != 4 {
		t.Errorf("%s", w.Body)
	}
	if w = ask(t, h, "/v1/completions", `{"prompt": ["cat", "cat"], "max_tokens": 1}`); len(read(t, w.Body.Bytes()).Choices) != 2 {
		t.Errorf("%s", w.Body)
	}
	// What lm-evaluation-harness asks for a choice's likelihood: it leaves the last token out.
	w = ask(t, h, "/v1/completions", `{"model": "x", "prompt": [[99, 97, 116, 100, 111]], "temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": 1234, "echo": true}`)
	l := read(t, w.Body.Bytes()).Choices[0].Logprobs
	if l == nil || strings.Join(l.Tokens, "") != "catdog" || len(l.Logs) != 6 || l.Logs[0] != nil || l.Top[0] != nil || l.Offsets[5] != 5 ||
		!(*l.Logs[3] > math.Log(0.9)) || l.Top[3]["d"] != *l.Logs[3] {
		t.Errorf("%s", w.Body)
	}
	w = ask(t, h, "/v1/completions", `{"prompt": "catdog. é", "logprobs": 0, "echo": true, "max_tokens": 1}`)
	if l = read(t, w.Body.Bytes()).Choices[0].Logprobs; l.Tokens[len(l.Tokens)-1] != "<|endoftext|>" { // else a harness would leave a token of the choice out
		t.Errorf("%s", w.Body)
	}
	w = ask(t, h, "/v1/completions", `{"prompt": "cat", "stream": true, "stop": ["."], "echo": true, "logprobs": 0}`)
	text, tokens := "", 0
	for _, a := range events(t, w) {
		text += a.Choices[0].Text
		if l := a.Choices[0].Logprobs; l != nil {
			tokens += len(l.Tokens)
		}
	}
	if text != "catdog" || tokens != 7 || !strings.Contains(w.Body.String(), `"finish_reason":"stop"}]}`) {
		t.Errorf("%q, %d tokens: %s", text, tokens, w.Body)
	}
	if w = ask(t, h, "/v1/completions", `{"prompt": "cat", "response_format": {"type": "json_object"}, "logit_bias": {"125": 90}}`); read(t, w.Body.Bytes()).Choices[0].Text != "{}" {
		t.Errorf("%s", w.Body)
	}
	if w = ask(t, h, "/v1/models", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"id":"pets"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w = ask(t, h, "/healthz", ""); w.Code != http.StatusOK || w.Body.String() != "ok\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w = ask(t, h, "/v1/embeddings", "{}"); w.Code != http.StatusNotFound || read(t, w.Body.Bytes()).Error == nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	ask(t, h, "/v1/completions", "{")
	for _, want := range []string{"starling_generate_answers_total{code=\"200\"} 9\n", "{code=\"400\"} 1\n", "{code=\"404\"} 1\n", "{kind=\"written\"} ", "{state=\"now\"} 0\n"} {
		if w = ask(t, h, "/metrics", ""); !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %q in %s", want, w.Body)
		}
	}
	// What asks for nothing is no reason to refuse: programs name it.
	w = ask(t, h, "/v1/completions", `{"prompt": "cat", "n": 1, "logit_bias": {}, "presence_penalty": 0, "frequency_penalty": 0.0, "logprobs": null, "echo": false, "top_k": -1,
		"best_of": 1, "response_format": {"type": "text"}, "tool_choice": "auto", "user": "me", "min_p": 0.0, "skip_special_tokens": true}`)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "dog. é") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What cannot be done is refused, and the field is named, as OpenAI's errors name it.
func TestRefusals(t *testing.T) {
	h := local(newServer(learned(t), plain, Config{2, time.Hour}).handler())
	const user = `{"messages": [{"role": "user", "content": "a"}]`
	for want, c := range map[string][]string{
		"prompt is missing":               {"/v1/completions", "prompt", `{}`},
		"not a JSON object":               {"/v1/completions", "", `[]`},
		"prompt is 7":                     {"/v1/completions", "prompt", `{"prompt": 7}`},
		"prompt is []":                    {"/v1/completions", "prompt", `{"prompt": []}`},
		"prompt is [[]]":                  {"/v1/completions", "prompt", `{"prompt": [[]]}`},
		"prompt is [\"a\", 1]":            {"/v1/completions", "prompt", `{"prompt": ["a", 1]}`},
		"token 0 is -1":                   {"/v1/completions", "", `{"prompt": [-1]}`},
		"n is 0":                          {"/v1/completions", "n", `{"prompt": "a", "n": 0}`},
		"are 200 texts":                   {"/v1/completions", "prompt", `{"prompt": ["a", "b"], "n": 100}`},
		"echo is 1":                       {"/v1/completions", "echo", `{"prompt": "a", "echo": 1}`},
		"names token 50256":               {"/v1/completions", "", `{"prompt": "a", "logit_bias": {"50256": -100}}`},
		"names \"a\"":                     {"/v1/completions", "logit_bias", `{"prompt": "a", "logit_bias": {"a": -100}}`},
		"schemas are not kept to":         {"/v1/completions", "response_format", `{"prompt": "a", "response_format": {"type": "json_schema"}}`},
		"presence_penalty is 3":           {"/v1/completions", "", `{"prompt": "a", "presence_penalty": 3}`},
		"frequency_penalty is \"1\"":      {"/v1/completions", "frequency_penalty", `{"prompt": "a", "frequency_penalty": "1"}`},
		"tool_choice is":                  {"/v1/chat/completions", "tool_choice", user + `, "tool_choice": {"type": "function", "function": {"name": "f"}}}`},
		"want 0..20":                      {"/v1/completions", "", `{"prompt": "a", "logprobs": 21}`},
		"best_of is 2":                    {"/v1/completions", "best_of", `{"prompt": "a", "best_of": 2}`},
		"is not known here: leave it out": {"/v1/completions", "grammar", `{"prompt": "a", "grammar": "x"}`},
		"did you mean max_tokens?":        {"/v1/completions", "max_token", `{"prompt": "a", "max_token": 1}`},
		"stop must":                       {"/v1/completions", "stop", `{"prompt": "a", "stop": 1}`},
		"temperature is -1":               {"/v1/completions", "", `{"prompt": "a", "temperature": -1}`},
		"0 with echo":                     {"/v1/completions", "", `{"prompt": "a", "max_tokens": 0}`},
		"30 tokens":                       {"/v1/completions", "", `{"prompt": "` + strings.Repeat("a", 30) + `"}`},
		"needs stream":                    {"/v1/completions", "stream_options", `{"prompt": "a", "stream_options": {"include_usage": true}}`},
		"stream_options is":               {"/v1/completions", "stream_options", `{"prompt": "a", "stream": true, "stream_options": {"x": true}}`},
		"needs logprobs":                  {"/v1/chat/completions", "top_logprobs", user + `, "top_logprobs": 2}`},
		"messages are missing":            {"/v1/chat/completions", "messages", `{}`},
		"has no role":                     {"/v1/chat/completions", "", `{"messages": [{"content": "a"}]}`},
		"which is given otherwise":        {"/v1/chat/completions", "", user + `, "chat_template_kwargs": {"messages": []}}`},
		"want 1 or more":                  {"/v1/chat/completions", "", user + `, "max_completion_tokens": 0}`},
		"is one of /v1/completions":       {"/v1/chat/completions", "prompt", user + `, "prompt": "a"}`},
		"is one of /v1/chat/completions":  {"/v1/completions", "messages", user + `}`},
		"of type \"image_url\"":           {"/v1/chat/completions", "messages", `{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`},
		"want a text, or a list of parts": {"/v1/chat/completions", "messages", `{"messages": [{"role": "user", "content": ["a"]}]}`},
		"of this machine":                 {"/v1/completions", "", `{"prompt": "a"}`, "Host", "example.org"},
		"of this machine ":                {"/v1/completions", "", `{"prompt": "a"}`, "Origin", "http://127.0.0.1:9"},
		"more than 1048576 bytes":         {"/v1/completions", "", strings.Repeat(" ", maxBody) + `{"prompt": "a"}`},
	} {
		w := ask(t, h, c[0], c[2], c[3:]...)
		a := read(t, w.Body.Bytes())
		if w.Code < 400 || w.Code >= 500 || a.Error == nil || a.Error.Type != "invalid_request_error" || a.Error.Param != c[1] || !strings.Contains(a.Error.Message, strings.TrimSpace(want)) {
			t.Errorf("%.200q: %d %s", c, w.Code, w.Body)
		}
	}
	s := newServer(learned(t), plain, Config{2, time.Hour})
	s.told = 2 * (4 + 2) * 3 // of two prompts of four tokens, one token that is written behind each, and an end
	for body, code := range map[string]int{
		`{"prompt": [[99, 97, 116, 100], [99, 97, 116, 100]], "echo": true, "logprobs": 2, "max_tokens": 1}`: 200,
		`{"prompt": [99, 97, 116, 100], "n": 2, "echo": true, "logprobs": 3, "max_tokens": 1}`:               400,
		`{"prompt": [99, 97, 116, 100], "n": 2, "echo": true, "logprobs": 2, "max_tokens": 2}`:               400,
		`{"prompt": [99, 97, 116, 100], "n": 2, "echo": true, "max_tokens": 9}`:                              200,
	} {
		if w := ask(t, s.handler(), "/v1/completions", body); w.Code != code || (code == 400) != strings.Contains(w.Body.String(), "likelihoods") {
			t.Errorf("%s: %d %.300s", body, w.Code, w.Body)
		}
	}
}

// Conversations are laid out by the base's template, and answered whole and in parts as OpenAI's
// programs read them. A content may be in parts.
func TestTalks(t *testing.T) {
	h := newServer(learned(t), plain, Config{2, time.Hour}).handler()
	body := func(more string) string {
		return `{"messages": [{"role": "system", "content": "c"}, {"role": "user", "content": [{"type": "text", "text": "at"}]}], "model": "any"` + more + `}`
	}
	w := ask(t, h, "/v1/chat/completions", body(`, "logprobs": true, "top_logprobs": 1`))
	a := read(t, w.Body.Bytes())
	if w.Code != http.StatusOK || a.Object != "chat.completion" || len(a.Choices) != 1 || a.Choices[0].Message.Role != "assistant" ||
		a.Choices[0].Message.Content != "dog. é" || a.Choices[0].Finish != generation.EndStop || a.Usage != (tally{3, 7, 10}) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if l := a.Choices[0].Logprobs.Content; len(l) != 8 || l[0].Token != "d" || l[5].Token != `bytes:\xc3` || len(l[5].Bytes) != 1 || l[0].Top[0].Token != "d" {
		t.Errorf("%s", w.Body)
	}
	text, roles, used := "", "", 0
	for _, a := range events(t, ask(t, h, "/v1/chat/completions", body(`, "stream": true, "stream_options": {"include_usage": true}`))) {
		for _, c := range a.Choices {
			text, roles = text+c.Delta.Content, roles+c.Delta.Role
		}
		if used = a.Usage.Total; a.Object != "chat.completion.chunk" {
			t.Errorf("%+v", a)
		}
	}
	if text != "dog. é" || roles != "assistant" || used != 10 {
		t.Errorf("%q by %q, %d tokens", text, roles, used)
	}
	ck := pets.Learned(t)
	ck.Base.Config.Decoder.Chat.Template = ""
	m, err := generation.Open(nil, ck, 0, 24)
	if err != nil {
		t.Fatal(err)
	}
	w = ask(t, newServer(m, plain, Config{2, time.Hour}).handler(), "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}]}`)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "has no template") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// stuck is who reads nothing of an answer until they are let.
type stuck struct {
	*httptest.ResponseRecorder
	reached, let chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.reached <- struct{}{}
	<-s.let
	return s.ResponseRecorder.Write(b)
}

// One that reads slowly does not keep others from being answered; where all turns are taken others wait, and where too
// many wait they are told.
func TestSeveralAtOnce(t *testing.T) {
	s := newServer(learned(t), plain, Config{2, time.Hour})
	h := s.handler()
	slow := &stuck{httptest.NewRecorder(), make(chan struct{}, 100), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(slow, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/completions", strings.NewReader(`{"prompt": "cat", "stream": true}`)))
	}()
	watchdog.Recv(t, "the slow one's first part", slow.reached)
	if w := ask(t, h, "/v1/completions", `{"prompt": "cat"}`); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "dog. é") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.turn <- struct{}{} // somebody else's
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(gone, "POST", "/v1/completions", strings.NewReader(`{"prompt": "cat"}`)))
	if w.Body.Len() != 0 {
		t.Errorf("one without a turn was answered: %s", w.Body)
	}
	for range cap(s.waiting) - len(s.waiting) {
		s.waiting <- struct{}{}
	}
	if w := ask(t, h, "/v1/completions", `{"prompt": "cat"}`); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	close(slow.let)
	watchdog.Recv(t, "the slow one's end", done)
	if !strings.Contains(slow.Body.String(), "[DONE]") {
		t.Errorf("%s", slow.Body)
	}
}

// Requests whose bodies come slowly take no place from others, however many.
func TestSlowBodies(t *testing.T) {
	s := newServer(learned(t), plain, Config{2, time.Hour})
	h := s.handler()
	var all sync.WaitGroup
	var ends []*io.PipeWriter
	for range cap(s.waiting) {
		body, end := io.Pipe()
		ends = append(ends, end)
		all.Go(func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/v1/completions", body))
		})
		if _, err := end.Write([]byte("{")); err != nil { // it is being read
			t.Fatal(err)
		}
	}
	if w := ask(t, h, "/v1/completions", `{"prompt": "cat"}`); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, end := range ends {
		_ = end.CloseWithError(io.ErrUnexpectedEOF)
	}
	all.Wait()
}

// A request that takes too long is ended, and told so.
func TestTimeLimit(t *testing.T) {
	h := newServer(learned(t), plain, Config{2, 1}).handler()
	w := ask(t, h, "/v1/completions", `{"prompt": "cat"}`)
	if a := read(t, w.Body.Bytes()); w.Code != http.StatusGatewayTimeout || a.Error == nil || !strings.Contains(a.Error.Message, "--time-limit") || a.Error.Type != "server_error" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
