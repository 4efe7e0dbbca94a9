package completions

import (
	"errors"
	"strings"
	"testing"
)

// A request is refused, or within its bounds.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"prompt": "a"}`, `{"prompt": ["a", "b"], "n": 2}`, `{"prompt": [1, 2]}`, `{"prompt": [[1], [2, 3]], "echo": true, "logprobs": 5, "max_tokens": 0}`,
		`{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], "top_logprobs": 2, "logprobs": true}`,
		`{"prompt": "a", "logit_bias": {"1": -100}, "stop": ["x"], "stream": true, "stream_options": {"include_usage": true}, "response_format": {"type": "json_object"}}`,
		`{"prompt": "a", "temperature": 1e309}`, `{"prompt": "a", "n": 1e9}`, `{"prompt": [["a"]]}`, `{"Prompt": "a"}`, `null`, `[]`, `{"prompt": null}`, `{"seed": -1}`,
		`{"prompt": "a", "max_tokens": 99999999999999999999}`,
	} {
		f.Add([]byte(body), false)
		f.Add([]byte(body), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, talk bool) {
		a, err := decode(body, talk, plain)
		if err != nil {
			if r := new(refusal); !errors.As(err, &r) || len(err.Error()) > 1000 {
				t.Fatalf("%q", err)
			}
			return
		}
		texts := len(a.texts) + len(a.ids)
		if texts*a.n > maxTexts || a.n < 1 || a.r.Validate() != nil || talk != (texts == 0) || talk == (a.said == nil) || a.texts != nil && a.ids != nil {
			t.Fatalf("%q: %+v", body, a)
		}
	})
}

// The parts of a content are its lines; other messages are as they were.
func TestContentParts(t *testing.T) {
	a, err := decode([]byte(`{"messages": [{"role": "user", "content": [{"type": "text", "text": "a<\"b"}, {"type": "text", "text": "c"}]}, {"role": "x", "content": "y"}]}`), true, plain)
	if err != nil || !strings.Contains(string(a.said), `\"b\nc"`) || !strings.Contains(string(a.said), `"content":"y"`) {
		t.Errorf("%s, %v", a.said, err)
	}
	whole := `[{"role": "user",  "content": "a"}]`
	if a, err = decode([]byte(`{"messages": `+whole+`}`), true, plain); err != nil || string(a.said) != whole {
		t.Errorf("%s, %v", a.said, err)
	}
}
