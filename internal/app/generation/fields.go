package generation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// taken are the fields of a request that a completion reads, and those that change no text: who asks,
// and where it is filed.
var (
	taken = []string{"model", "prompt", "max_tokens", "temperature", "top_p", "top_k", "repetition_penalty", "seed", "stop", "stream", "n",
		"messages", "tools", "chat_template_kwargs", "max_completion_tokens", "stream_options"}
	silent = []string{"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"}
)

// neutral are the values by which a field asks for nothing, beside null: a request may name them.
var neutral = map[string][]string{
	"echo": {"false"}, "logprobs": {"false"}, "top_logprobs": {"0"}, "suffix": {`""`}, "best_of": {"1"},
	"presence_penalty": {"0", "0.0"}, "frequency_penalty": {"0", "0.0"}, "logit_bias": {"{}"}, "min_p": {"0", "0.0"},
	"response_format": {`{"type":"text"}`}, "tool_choice": {`"auto"`}, "parallel_tool_calls": {"true"}, "modalities": {`["text"]`},
}

// undone returns an error that names the first field, by the alphabet, that asks for what is not done here.
func undone(fields map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(taken, name) || slices.Contains(silent, name) || string(fields[name]) == "null" {
			continue
		}
		values, known := neutral[name]
		var value bytes.Buffer
		if err := json.Compact(&value, fields[name]); err != nil {
			return fmt.Errorf("field %.40q: %w", name, err)
		}
		switch {
		case !known:
			return fmt.Errorf("field %.40q is not known here: leave it out", name)
		case !slices.Contains(values, value.String()):
			return fmt.Errorf("%s is %.80s, which is not supported: leave it out, or set it to %s", name, value.String(), values[0])
		}
	}
	return nil
}
