package generation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Limits of the server.
const (
	maxBody    = 1 << 20
	maxWaiting = 16 // requests that wait for their turn
)

// completion is what OpenAI's /v1/completions takes, as far as it is computed here.
type completion struct {
	Model       string          `json:"model"`
	Prompt      *string         `json:"prompt"`
	MaxTokens   *int            `json:"max_tokens"`
	Temperature *float64        `json:"temperature"`
	TopP        *float64        `json:"top_p"`
	TopK        *int            `json:"top_k"`
	Repetition  *float64        `json:"repetition_penalty"`
	Seed        *uint64         `json:"seed"`
	Stop        json.RawMessage `json:"stop"` // a text or a list
	Stream      bool            `json:"stream"`
	N           *int            `json:"n"`

	// Of a conversation, in place of a prompt.
	Messages   json.RawMessage `json:"messages"`
	Tools      json.RawMessage `json:"tools"`
	Switches   json.RawMessage `json:"chat_template_kwargs"`
	MostTokens *int            `json:"max_completion_tokens"`
	Options    *struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// request is what it asks for; what it does not name is as r has it.
func (c completion) request(r Request, talk bool) (Request, error) {
	switch {
	case talk && len(c.Messages) == 0:
		return r, errors.New("messages are missing: want a list of objects with role and content")
	case talk && c.Prompt != nil:
		return r, errors.New("a conversation has messages, and no prompt")
	case !talk && c.Prompt == nil:
		return r, errors.New("prompt is missing: want one text")
	case c.N != nil && *c.N != 1:
		return r, fmt.Errorf("n is %d, want 1", *c.N)
	}
	if r.Switches = c.Switches; !talk {
		r.Prompt = *c.Prompt
	}
	set(&r.Most, c.MaxTokens)
	set(&r.Most, c.MostTokens)
	set(&r.Temperature, c.Temperature)
	set(&r.TopP, c.TopP)
	set(&r.TopK, c.TopK)
	set(&r.Repetition, c.Repetition)
	set(&r.Seed, c.Seed)
	if len(c.Stop) > 0 && string(c.Stop) != "null" {
		var one string
		var list []string
		if json.Unmarshal(c.Stop, &one) == nil {
			list = []string{one}
		} else if json.Unmarshal(c.Stop, &list) != nil {
			return r, errors.New("stop must be a text or a list of texts")
		}
		r.Stops = list
	}
	return r, r.Validate()
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// answer is what is sent back, whole or in parts.
type answer struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"` // none beside the usage of a stream
	Usage   *usage   `json:"usage,omitempty"`
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

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// Handler answers /v1/completions, /v1/chat/completions and /v1/models; r is what a request does
// not name. One text is written at a time, and a few wait.
func Handler(m *Model, r Request) http.Handler {
	turn, waiting := make(chan struct{}, 1), make(chan struct{}, maxWaiting)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": m.Name, "object": "model", "owned_by": "starling"}}})
	})
	for path, talk := range map[string]bool{"POST /v1/completions": false, "POST /v1/chat/completions": true} {
		mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
			c, fields, err := readCompletion(http.MaxBytesReader(w, req.Body, maxBody))
			if err != nil {
				refuse(w, http.StatusBadRequest, fmt.Sprintf("the request is not a JSON object of at most %d bytes that has the types of OpenAI's: %v", maxBody, err))
				return
			}
			if err := undone(fields); err != nil {
				refuse(w, http.StatusBadRequest, err.Error())
				return
			}
			want, err := c.request(r, talk)
			if err != nil {
				refuse(w, http.StatusBadRequest, err.Error())
				return
			}
			select {
			case waiting <- struct{}{}:
				defer func() { <-waiting }()
			default:
				refuse(w, http.StatusTooManyRequests, fmt.Sprintf("%d requests wait already", maxWaiting))
				return
			}
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
			case <-req.Context().Done():
				return
			}
			m.complete(w, req, c, want, talk)
		})
	}
	return mux
}

// readCompletion reads a request, and all of its fields by their names.
func readCompletion(body io.Reader) (c completion, fields map[string]json.RawMessage, err error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return c, nil, fmt.Errorf("request: %w", err)
	}
	if err := errors.Join(json.Unmarshal(data, &c), json.Unmarshal(data, &fields)); err != nil {
		return c, nil, fmt.Errorf("request: %w", err)
	}
	return c, fields, nil
}

// complete writes one text, or what comes next in a conversation.
func (m *Model) complete(w http.ResponseWriter, req *http.Request, c completion, want Request, talk bool) {
	write := func(each func(string) error) (Text, error) { return m.Write(req.Context(), want, each) }
	now := time.Now()
	a := answer{ID: fmt.Sprintf("cmpl-%x", now.UnixNano()), Object: "text_completion", Created: now.Unix(), Model: m.Name}
	whole := func(text string) choice { return choice{Text: &text} }
	part := whole
	if talk {
		write = func(each func(string) error) (Text, error) {
			return m.Chat(req.Context(), c.Messages, c.Tools, want, each)
		}
		a.ID, a.Object = "chat"+a.ID, "chat.completion"
		whole = func(text string) choice { return choice{Message: &message{"assistant", &text}} }
		part = func(text string) choice { return choice{Delta: &message{Content: &text}} }
		if c.Stream {
			a.Object = "chat.completion.chunk"
		}
	}
	used := func(t Text) *usage { return &usage{t.Read, t.Tokens, t.Read + t.Tokens} }
	if !c.Stream {
		t, err := write(nil)
		if err != nil {
			m.fail(w, err)
			return
		}
		only := whole(t.Text)
		only.Finish = &t.Ended
		a.Choices, a.Usage = []choice{only}, used(t)
		reply(w, http.StatusOK, a)
		return
	}
	begun := false
	send := func(choices ...choice) error {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-store")
			if talk { // the first part says who speaks
				choices[0].Delta.Role = "assistant"
			}
		}
		a.Choices = append([]choice{}, choices...)
		data, err := json.Marshal(a)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", data)
		}
		if err == nil {
			err = http.NewResponseController(w).Flush()
		}
		return err
	}
	t, err := write(func(text string) error { return send(part(text)) })
	if err != nil {
		if !begun {
			m.fail(w, err)
		}
		return
	}
	last := part("")
	last.Finish = &t.Ended
	if err := send(last); err != nil {
		return
	}
	if c.Options != nil && c.Options.Usage {
		if a.Usage = used(t); send() != nil {
			return
		}
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// fail answers a text that was not begun.
func (m *Model) fail(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrPrompt) {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	refuse(w, http.StatusInternalServerError, err.Error())
}

func refuse(w http.ResponseWriter, status int, why string) {
	reply(w, status, map[string]any{"error": map[string]any{"message": why, "type": "invalid_request_error"}})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// Serve answers at a loopback address until ctx ends; ready is told its URL. A page of another
// origin gets nothing: a browser asks before it posts JSON, and is not answered.
func Serve(ctx context.Context, m *Model, address string, r Request, ready func(url string) error) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if !loopback(host) {
		return fmt.Errorf("--listen: %s is not a loopback address: want 127.0.0.1:PORT, since anyone who reaches the port reads the model", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: local(Handler(m, r)), ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	if err := ready("http://" + l.Addr().String()); err != nil {
		return errors.Join(err, l.Close())
	}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })() // which ends what is being written, too
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// local refuses requests that name another host, as those of a page do whose name was made to
// point here, and those that a page of another origin sends.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host := req.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !loopback(host) || req.Header.Get("Origin") != "" {
			refuse(w, http.StatusForbidden, "only programs of this machine are answered")
			return
		}
		next.ServeHTTP(w, req)
	})
}

// loopback reports whether a host is this machine by itself.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
