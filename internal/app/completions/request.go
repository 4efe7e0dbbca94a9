package completions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/app/generation"
	"github.com/starling-fl/starling/internal/leaf/nearest"
)

// Bounds of a request, beside its bytes.
const (
	maxTexts = 128     // prompts times n
	maxTold  = 1 << 18 // likelihoods that are told: tokens times one more than logprobs
)

// asked is a request as it was decoded.
type asked struct {
	talk    bool
	r       generation.Request // what all texts have
	texts   []string           // prompts
	ids     [][]int32          // or these
	said    []byte             // messages of a conversation, and its tools
	tools   []byte
	n, best int
	stream  bool
	usage   bool // is told at a stream's end
}

// refusal is a request that is not answered, with the field that is the reason, if one is.
type refusal struct {
	field string
	err   error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// decode reads a request to /v1/completions, or with talk to /v1/chat/completions; what it does not name is as r has it.
func decode(body []byte, talk bool, r generation.Request) (*asked, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, &refusal{err: fmt.Errorf("the request is not a JSON object: %w", err)}
	}
	a := &asked{talk: talk, r: r, n: 1, best: 1}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := a.take(name, fields[name]); err != nil {
			return nil, &refusal{name, err}
		}
	}
	switch {
	case talk && a.said == nil:
		return nil, &refusal{"messages", errors.New("messages are missing: want a list of objects with role and content")}
	case !talk && len(a.texts)+len(a.ids) == 0:
		return nil, &refusal{"prompt", errors.New("prompt is missing: want a text, a list of texts, a list of token ids, or a list of such lists")}
	case a.n < 1 || a.n > maxTexts:
		return nil, &refusal{"n", fmt.Errorf("n is %d, want 1..%d", a.n, maxTexts)}
	case a.best != 1 && a.best != a.n:
		return nil, &refusal{"best_of", fmt.Errorf("best_of is %d: texts are not ranked, leave it out", a.best)}
	case a.n*(len(a.texts)+len(a.ids)) > maxTexts:
		return nil, &refusal{"prompt", fmt.Errorf("%d prompts, each %d times, are %d texts: the limit is %d, send fewer at once",
			len(a.texts)+len(a.ids), a.n, a.n*(len(a.texts)+len(a.ids)), maxTexts)}
	case talk && a.r.Likely > 0 && !a.r.Told:
		return nil, &refusal{"top_logprobs", errors.New("top_logprobs needs logprobs: true")}
	case a.usage && !a.stream:
		return nil, &refusal{"stream_options", errors.New("stream_options needs stream: true")}
	}
	if err := a.r.Validate(); err != nil {
		return nil, &refusal{err: err}
	}
	return a, nil
}

// take reads a field, unless it is null.
func (a *asked) take(name string, value json.RawMessage) error {
	if string(value) == "null" {
		return nil
	}
	own, other, path := ofText, ofTalk, "/v1/chat/completions"
	if a.talk {
		own, other, path = ofTalk, ofText, "/v1/completions"
	}
	read, known := both[name]
	if !known {
		read, known = own[name]
	}
	values, idle := neutral[name]
	_, elsewhere := other[name]
	switch {
	case known:
		return read(a, value)
	case slices.Contains(silent, name):
		return nil
	case idle:
		var text bytes.Buffer
		if err := json.Compact(&text, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !slices.Contains(values, text.String()) {
			return fmt.Errorf("%s is %.80s, which is not supported: leave it out, or set it to %s", name, text.String(), values[0])
		}
		return nil
	case elsewhere:
		return fmt.Errorf("field %q is one of %s: leave it out", name, path)
	}
	names := slices.Concat(slices.Sorted(maps.Keys(both)), slices.Sorted(maps.Keys(own)))
	return fmt.Errorf("field %.40q is not known here: leave it out%s", name, nearest.Question(name, "", names))
}

// silent are fields that change no text: who asks, and where it is filed.
var silent = []string{"model", "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"}

// neutral are the values by which a field asks for nothing: a request may name them.
var neutral = map[string][]string{
	"suffix": {`""`}, "min_p": {"0", "0.0"}, "tool_choice": {`"auto"`}, "parallel_tool_calls": {"true"}, "modalities": {`["text"]`},
	"skip_special_tokens": {"true"}, "ignore_eos": {"false"}, "use_beam_search": {"false"}, "length_penalty": {"1", "1.0"},
}

// reader reads a field's value.
type reader func(a *asked, value json.RawMessage) error

// both are fields of texts and of conversations; ofText and ofTalk are those of one.
var (
	both = map[string]reader{
		"max_tokens":         into("max_tokens", "a whole number", func(a *asked) *int { return &a.r.Most }),
		"temperature":        into("temperature", "a number", func(a *asked) *float64 { return &a.r.Temperature }),
		"top_p":              into("top_p", "a number", func(a *asked) *float64 { return &a.r.TopP }),
		"top_k":              readTopK,
		"repetition_penalty": into("repetition_penalty", "a number", func(a *asked) *float64 { return &a.r.Repetition }),
		"presence_penalty":   into("presence_penalty", "a number", func(a *asked) *float64 { return &a.r.Presence }),
		"frequency_penalty":  into("frequency_penalty", "a number", func(a *asked) *float64 { return &a.r.Frequency }),
		"logit_bias":         readBias,
		"seed":               into("seed", "a whole number of 0 or more", func(a *asked) *uint64 { return &a.r.Seed }),
		"stop":               readStop,
		"n":                  into("n", "a whole number", func(a *asked) *int { return &a.n }),
		"stream":             into("stream", "true or false", func(a *asked) *bool { return &a.stream }),
		"stream_options":     readStreamOptions,
		"response_format":    readFormat,
	}
	ofText = map[string]reader{
		"prompt":   readPrompt,
		"echo":     into("echo", "true or false", func(a *asked) *bool { return &a.r.Echo }),
		"best_of":  into("best_of", "a whole number", func(a *asked) *int { return &a.best }),
		"logprobs": readLogprobs,
		// As llama.cpp and vLLM call them.
		"parse_special": into("parse_special", "true or false", func(a *asked) *bool { return &a.r.Marks }),
		"add_special_tokens": func(a *asked, value json.RawMessage) error {
			add := true
			err := into("add_special_tokens", "true or false", func(*asked) *bool { return &add })(a, value)
			a.r.Bare = !add
			return err
		},
	}
	ofTalk = map[string]reader{
		"max_completion_tokens": into("max_completion_tokens", "a whole number", func(a *asked) *int { return &a.r.Most }),
		"messages":              readMessages,
		"tools":                 func(a *asked, value json.RawMessage) error { a.tools = value; return nil },
		"chat_template_kwargs":  func(a *asked, value json.RawMessage) error { a.r.Switches = value; return nil },
		"logprobs":              into("logprobs", "true or false", func(a *asked) *bool { return &a.r.Told }),
		"top_logprobs":          into("top_logprobs", "a whole number", func(a *asked) *int { return &a.r.Likely }),
	}
)

// into reads a value of a type.
func into[T any](name, want string, to func(*asked) *T) reader {
	return func(a *asked, value json.RawMessage) error {
		if json.Unmarshal(value, to(a)) != nil {
			return fmt.Errorf("%s is %.80s, want %s", name, value, want)
		}
		return nil
	}
}

// readTopK takes -1 for all tokens, as vLLM does.
func readTopK(a *asked, value json.RawMessage) error {
	if err := into("top_k", "a whole number", func(a *asked) *int { return &a.r.TopK })(a, value); err != nil {
		return err
	}
	if a.r.TopK == -1 {
		a.r.TopK = 0
	}
	return nil
}

func readBias(a *asked, value json.RawMessage) error {
	var biases map[string]float64
	if json.Unmarshal(value, &biases) != nil {
		return fmt.Errorf("logit_bias is %.80s, want an object of token ids and numbers, as {\"50256\": -100}", value)
	}
	a.r.Bias = make(map[int32]float64, len(biases))
	for name, x := range biases {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return fmt.Errorf("logit_bias names %.40q, want a token's id", name)
		}
		a.r.Bias[int32(id)] = x
	}
	return nil
}

func readStop(a *asked, value json.RawMessage) error {
	var one string
	if json.Unmarshal(value, &one) == nil {
		a.r.Stops = []string{one}
		return nil
	}
	a.r.Stops = nil
	if json.Unmarshal(value, &a.r.Stops) != nil {
		return errors.New("stop must be a text or a list of texts")
	}
	return nil
}

func readStreamOptions(a *asked, value json.RawMessage) error {
	var o struct {
		Usage bool `json:"include_usage"`
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("stream_options is %.80s, want {\"include_usage\": true}", value)
	}
	a.usage = o.Usage
	return nil
}

// readFormat takes a text, or a JSON object.
func readFormat(a *asked, value json.RawMessage) error {
	var f struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(value, &f) != nil || f.Type != "text" && f.Type != "json_object" {
		return fmt.Errorf("response_format is %.80s, want {\"type\": \"text\"} or {\"type\": \"json_object\"}: schemas are not kept to", value)
	}
	a.r.Object = f.Type == "json_object"
	return nil
}

// readLogprobs takes how many alternatives are told of each token.
func readLogprobs(a *asked, value json.RawMessage) error {
	if string(value) == "false" {
		return nil
	}
	a.r.Told = true
	return into("logprobs", "a whole number", func(a *asked) *int { return &a.r.Likely })(a, value)
}

// readPrompt takes a text, texts, tokens, or several lists of tokens.
func readPrompt(a *asked, value json.RawMessage) error {
	var one string
	var tokens []int32
	switch {
	case json.Unmarshal(value, &one) == nil:
		a.texts = []string{one}
	case json.Unmarshal(value, &a.texts) == nil && len(a.texts) > 0:
	case json.Unmarshal(value, &tokens) == nil && len(tokens) > 0:
		a.texts, a.ids = nil, [][]int32{tokens}
	case json.Unmarshal(value, &a.ids) == nil && len(a.ids) > 0 && !slices.ContainsFunc(a.ids, func(ids []int32) bool { return len(ids) == 0 }):
		a.texts = nil
	default:
		return fmt.Errorf("prompt is %.80s, want a text, a list of texts, a list of token ids, or a list of such lists, none empty", value)
	}
	return nil
}

// readMessages takes a conversation. A message's content may be a list of parts, each a text, which then are its lines.
func readMessages(a *asked, value json.RawMessage) error {
	a.said = value
	var messages []map[string]json.RawMessage
	_ = json.Unmarshal(value, &messages) // of what is no such list nothing changes: that it is none is said where it is laid out
	changed := false
	for i, m := range messages {
		var parts []struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		if content := bytes.TrimSpace(m["content"]); len(content) == 0 || content[0] != '[' {
			continue
		}
		if json.Unmarshal(m["content"], &parts) != nil {
			return fmt.Errorf("the content of message %d is %.80s, want a text, or a list of parts as {\"type\": \"text\", \"text\": \"...\"}", i+1, m["content"])
		}
		var lines []string
		for _, p := range parts {
			if p.Type != "text" || p.Text == nil {
				return fmt.Errorf("message %d has a part of type %.40q: this model reads texts alone", i+1, p.Type)
			}
			lines = append(lines, *p.Text)
		}
		text, err := json.Marshal(strings.Join(lines, "\n"))
		if err != nil {
			return err
		}
		m["content"], changed = text, true
	}
	if !changed {
		return nil
	}
	var err error
	a.said, err = json.Marshal(messages)
	return err
}
