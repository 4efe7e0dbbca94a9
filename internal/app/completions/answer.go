package completions

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/starling-fl/starling/internal/app/generation"
)

// patience is how long a part of an answer may take to reach who asked.
const patience = time.Minute

// answer is the body of an answer, whole or in parts.
type answer struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"` // none beside the usage of a stream
	Usage   *tally   `json:"usage,omitempty"`
}

type choice struct {
	Index    int      `json:"index"`
	Text     *string  `json:"text,omitempty"`    // of a text
	Message  *message `json:"message,omitempty"` // of a conversation
	Delta    *message `json:"delta,omitempty"`   // of a conversation in parts
	Logprobs any      `json:"logprobs"`
	Finish   *string  `json:"finish_reason"`
}

type message struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type tally struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func (u *tally) add(t generation.Text) {
	u.Completion += t.Tokens
	u.Total = u.Prompt + u.Completion
}

// write writes the texts of a request, one after the other.
func (s *server) write(ctx context.Context, w http.ResponseWriter, a *asked, texts []generation.Request) {
	now := time.Now()
	out := answer{ID: fmt.Sprintf("cmpl-%x", now.UnixNano()), Object: "text_completion", Created: now.Unix(), Model: s.m.Name}
	var used tally
	for i, r := range texts {
		if i%a.n == 0 {
			used.Prompt += r.Size()
		}
	}
	made := func(i int, text string, told []generation.Token) choice {
		return choice{Index: i, Text: &text, Logprobs: a.logprobs(told)}
	}
	if a.talk {
		out.ID, out.Object = "chat"+out.ID, "chat.completion"
		made = func(i int, text string, told []generation.Token) choice {
			return choice{Index: i, Message: &message{"assistant", &text}, Logprobs: a.logprobs(told)}
		}
	}
	if a.stream {
		s.stream(ctx, w, a, texts, out, used)
		return
	}
	for i, r := range texts {
		t, err := s.m.Write(ctx, r, nil)
		s.counted.add(t)
		if err != nil {
			fail(w, timely(ctx, err))
			return
		}
		c := made(i, t.Text, t.Told)
		c.Finish = &t.Ended
		out.Choices = append(out.Choices, c)
		used.add(t)
	}
	out.Usage = &used
	reply(w, http.StatusOK, out)
}

// stream writes them as events, part by part.
func (s *server) stream(ctx context.Context, w http.ResponseWriter, a *asked, texts []generation.Request, out answer, used tally) {
	made := func(i int, p generation.Part) choice {
		return choice{Index: i, Text: &p.Text, Logprobs: a.logprobs(p.Told)}
	}
	if a.talk {
		out.Object = "chat.completion.chunk"
		made = func(i int, p generation.Part) choice {
			return choice{Index: i, Delta: &message{Content: &p.Text}, Logprobs: a.logprobs(p.Told)}
		}
	}
	to := http.NewResponseController(w)
	begun := false
	event := func(v any) error {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-store")
		}
		_ = to.SetWriteDeadline(time.Now().Add(patience)) // of a TCP connection
		data, err := json.Marshal(v)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", data)
		}
		if err == nil {
			err = to.Flush()
		}
		return err
	}
	send := func(c ...choice) error {
		out.Choices = append([]choice{}, c...)
		return event(out)
	}
	for i, r := range texts {
		first := a.talk // it says who speaks
		part := func(p generation.Part) error {
			c := made(i, p)
			if first {
				c.Delta.Role, first = "assistant", false
			}
			return send(c)
		}
		t, err := s.m.Write(ctx, r, part)
		s.counted.add(t)
		switch err = timely(ctx, err); {
		case err != nil && !begun:
			fail(w, err)
			return
		case err != nil:
			_ = event(complaint(http.StatusInternalServerError, "", err.Error()))
			return
		}
		used.add(t)
		last := made(i, generation.Part{})
		if last.Finish = &t.Ended; first {
			last.Delta.Role = "assistant"
		}
		if send(last) != nil {
			return
		}
	}
	if a.usage {
		if out.Usage = &used; send() != nil {
			return
		}
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// logprobs are the likelihoods of tokens, as OpenAI's /v1/completions and /v1/chat/completions tell them.
func (a *asked) logprobs(tokens []generation.Token) any {
	switch {
	case !a.r.Told || len(tokens) == 0:
		return nil
	case a.talk:
		return map[string]any{"content": talkLogprobs(tokens)}
	}
	var l struct {
		Tokens  []string             `json:"tokens"`
		Logs    []*float64           `json:"token_logprobs"` // null of a first token
		Top     []map[string]float64 `json:"top_logprobs"`   // likewise
		Offsets []int                `json:"text_offset"`    // in characters
	}
	for _, t := range tokens {
		l.Tokens, l.Offsets = append(l.Tokens, t.Text), append(l.Offsets, t.At)
		if math.IsNaN(t.Logprob) {
			l.Logs, l.Top = append(l.Logs, nil), append(l.Top, nil)
			continue
		}
		top := map[string]float64{}
		for _, k := range append(t.Top, t.Likely) { // the token itself always; of those that are spelled alike the likeliest
			if x, there := top[k.Text]; !there || k.Logprob > x {
				top[k.Text] = k.Logprob
			}
		}
		l.Logs, l.Top = append(l.Logs, &t.Logprob), append(l.Top, top)
	}
	return l
}

// likely is a token of a conversation.
type likely struct {
	Token   string   `json:"token"`
	Logprob float64  `json:"logprob"`
	Bytes   []int    `json:"bytes"`
	Top     []likely `json:"top_logprobs,omitzero"`
}

func talkLogprobs(tokens []generation.Token) []likely {
	list := []likely{}
	of := func(t generation.Likely) likely {
		l := likely{Token: t.Text, Logprob: t.Logprob}
		for _, b := range t.Bytes {
			l.Bytes = append(l.Bytes, int(b))
		}
		return l
	}
	for _, t := range tokens {
		l := of(t.Likely)
		l.Top = []likely{}
		for _, k := range t.Top {
			l.Top = append(l.Top, of(k))
		}
		list = append(list, l)
	}
	return list
}

func reply(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer is no JSON","type":"server_error","param":null,"code":null}}`)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // of a TCP connection
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}
