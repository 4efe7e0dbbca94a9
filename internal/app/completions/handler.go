// Package completions serves a model over OpenAI's HTTP interface, to programs of this machine or, with TLS and a token,
// to others. A request is a stranger's: its bytes, texts, likelihoods and time are bounded.
package completions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/starling-fl/starling/internal/app/generation"
)

const (
	maxBody    = 1 << 20
	maxWaiting = 64 // requests that wait for their turn
)

// Config is how a model is served.
type Config struct {
	Together int           // requests that are answered at once: each holds the keys and values of a text
	Longest  time.Duration // that a request may take once it is its turn
}

// server answers requests.
type server struct {
	m       *generation.Model
	r       generation.Request // what a request does not name
	c       Config
	turn    chan struct{} // Go serves those that wait for a channel in their order
	waiting chan struct{}
	told    int // likelihoods that are told at most
	counted counters
}

// newServer makes one.
func newServer(m *generation.Model, r generation.Request, c Config) *server {
	return &server{m: m, r: r, c: c, told: maxTold, turn: make(chan struct{}, c.Together), waiting: make(chan struct{}, c.Together+maxWaiting)}
}

// handler answers /v1/completions, /v1/chat/completions, /v1/models, /metrics and /healthz. Several requests are answered
// at once, a program of the model each by turns; others wait in their order.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": s.m.Name, "object": "model", "owned_by": "starling",
			"max_model_len": s.m.Context()}}})
	})
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, false) })
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, true) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "", fmt.Sprintf("%.20s %.80q is not answered here: want POST /v1/completions or /v1/chat/completions, "+
			"or GET /v1/models, /metrics or /healthz", r.Method, r.URL.Path))
	})
	return s.counting(mux)
}

// serve answers a request for texts. Only one that was read takes a place: slow ones would keep others out.
func (s *server) serve(w http.ResponseWriter, req *http.Request, talk bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, "", fmt.Sprintf("the request has more than %d bytes: send fewer prompts at once", maxBody))
		return
	} else if err != nil {
		return // nobody is there
	}
	a, err := decode(body, talk, s.r)
	if err != nil {
		fail(w, err)
		return
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "", fmt.Sprintf("%d requests wait already: ask again later", maxWaiting))
		return
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-req.Context().Done():
		return
	}
	ctx, cancel := context.WithTimeoutCause(req.Context(), s.c.Longest, errLong)
	defer cancel()
	began := time.Now()
	defer func() { s.counted.seconds.Add(time.Since(began).Nanoseconds()) }()
	texts, err := s.read(ctx, a)
	if err != nil {
		fail(w, timely(ctx, err))
		return
	}
	s.write(ctx, w, a, texts)
}

// errLong ends a request that takes too long.
var errLong = errors.New("the request takes longer than --time-limit: ask for fewer or shorter texts, or raise it")

// timely is an error, or that the time is over.
func timely(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errLong) {
		return errLong
	}
	return err
}

// read reads the prompts of a request, each as often as it is to be continued.
func (s *server) read(ctx context.Context, a *asked) (texts []generation.Request, err error) {
	told := 0
	add := func(r generation.Request, err error) error {
		if err != nil {
			return err
		}
		if r.Told {
			told += a.n * (r.Most + 1) * (1 + r.Likely)
			if r.Echo {
				told += a.n * r.Size() * (1 + r.Likely)
			}
		}
		if told > s.told {
			return &refusal{"logprobs", fmt.Errorf("more than %d likelihoods would be told: send fewer prompts at once, or ask for fewer logprobs", s.told)}
		}
		for range a.n {
			texts = append(texts, r)
			r.Seed++
		}
		return ctx.Err()
	}
	if a.talk {
		err = add(s.m.Said(ctx, a.said, a.tools, a.r))
	}
	for i := 0; i < len(a.texts)+len(a.ids) && err == nil; i++ {
		r := a.r
		if a.texts != nil {
			r.Prompt = a.texts[i]
		} else {
			r.Tokens = a.ids[i]
		}
		err = add(s.m.Read(r))
	}
	return texts, err
}

// fail answers a request that was not begun.
func fail(w http.ResponseWriter, err error) {
	status, field := http.StatusInternalServerError, ""
	r := new(refusal)
	switch {
	case errors.As(err, &r):
		status, field = http.StatusBadRequest, r.field
	case errors.Is(err, generation.ErrPrompt):
		status = http.StatusBadRequest
	case errors.Is(err, errLong):
		status = http.StatusGatewayTimeout
	}
	refuse(w, status, field, err.Error())
}

// refuse answers with an error as OpenAI's are.
func refuse(w http.ResponseWriter, status int, field, why string) {
	reply(w, status, complaint(status, field, why))
}

func complaint(status int, field, why string) map[string]any {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	var param any
	if field != "" {
		param = field
	}
	return map[string]any{"error": map[string]any{"message": why, "type": kind, "param": param, "code": nil}}
}
