package gguf

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// Kinds of tokens, as llama.cpp numbers them.
const (
	tokenNormal  = 1
	tokenControl = 3
	tokenUser    = 4
	tokenUnused  = 5
)

// theirTokenizer is what of a tokenizer.json goes into a file.
type theirTokenizer struct {
	Added []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	Normalizer *struct {
		Type string `json:"type"`
	} `json:"normalizer"`
	Splits json.RawMessage `json:"pre_tokenizer"`
	Model  struct {
		Type   string            `json:"type"`
		Vocab  json.RawMessage   `json:"vocab"`
		Merges []json.RawMessage `json:"merges"`
	} `json:"model"`
}

// splits is a pre-tokenizer.
type splits struct {
	Type    string `json:"type"`
	Prefix  bool   `json:"add_prefix_space"`
	Regex   *bool  `json:"use_regex"`
	Single  bool   `json:"individual_digits"`
	Pattern struct {
		Regex string
	} `json:"pattern"`
	Behavior string   `json:"behavior"`
	List     []splits `json:"pretokenizers"`
}

// Expressions that llama.cpp has under a name.
const (
	llama3Words = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Words  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// name is what llama.cpp calls a way to split texts, "" if it has none.
func (s splits) name() string {
	list := []splits{s}
	if s.Type == "Sequence" {
		list = s.List
	}
	byBytes := func(p splits, regex bool) bool {
		return p.Type == "ByteLevel" && !p.Prefix && (p.Regex == nil || *p.Regex) == regex
	}
	switch {
	case len(list) == 1 && byBytes(list[0], true):
		return "gpt-2"
	case len(list) != 2:
		return ""
	case list[0].Type == "Digits" && list[0].Single && byBytes(list[1], true):
		return "smollm"
	case list[0].Type != "Split" || list[0].Behavior != "Isolated" || !byBytes(list[1], false):
		return ""
	}
	return map[string]string{llama3Words: "llama-bpe", qwen2Words: "qwen2"}[list[0].Pattern.Regex]
}

// tokens writes the tokenizer.
func (f *file) tokens(c model.Config, raw []byte) error {
	var t theirTokenizer
	if err := json.Unmarshal(raw, &t); err != nil {
		return fmt.Errorf("%w: the base's tokenizer is no tokenizer.json: %w", ErrUnsupported, err)
	}
	var s splits
	if json.Unmarshal(t.Splits, &s) != nil {
		s = splits{} // none, which has no name
	}
	before := s.name()
	switch {
	case t.Model.Type != "BPE":
		return fmt.Errorf("%w: the tokenizer is a %s, only BPE over bytes is written", ErrUnsupported, t.Model.Type)
	case before == "":
		return fmt.Errorf("%w: llama.cpp has no name for how the tokenizer splits texts (pre_tokenizer): those of GPT-2, SmolLM, Llama 3 and Qwen 2 are written", ErrUnsupported)
	case t.Normalizer != nil && t.Normalizer.Type != "NFC":
		return fmt.Errorf("%w: the tokenizer's normalizer is %s, which llama.cpp does not have", ErrUnsupported, t.Normalizer.Type)
	}
	vocab := map[string]int{}
	if err := json.Unmarshal(t.Model.Vocab, &vocab); err != nil {
		return fmt.Errorf("%w: model.vocab: %w", ErrUnsupported, err)
	}
	pieces, kinds := make([]string, c.VocabSize), make([]int32, c.VocabSize)
	for i := range pieces {
		pieces[i], kinds[i] = fmt.Sprintf("[PAD%d]", i), tokenUnused
	}
	put := func(id int, piece string, kind int32) error {
		if id < 0 || id >= len(pieces) {
			return fmt.Errorf("%w: token %.40q has the id %d, the model has %d", ErrUnsupported, piece, id, len(pieces))
		}
		pieces[id], kinds[id] = piece, kind
		return nil
	}
	for piece, id := range vocab {
		if err := put(id, piece, tokenNormal); err != nil {
			return err
		}
	}
	for _, a := range t.Added {
		kind := int32(tokenUser)
		if a.Special {
			kind = tokenControl
		}
		if err := put(a.ID, a.Content, kind); err != nil {
			return err
		}
	}
	merges := make([]string, len(t.Model.Merges))
	for i, raw := range t.Model.Merges {
		var pair []string
		if json.Unmarshal(raw, &pair) == nil {
			merges[i] = strings.Join(pair, " ")
		} else if err := json.Unmarshal(raw, &merges[i]); err != nil {
			return fmt.Errorf("%w: model.merges[%d] is no pair", ErrUnsupported, i)
		}
	}
	f.set("tokenizer.ggml.model", "gpt2")
	f.set("tokenizer.ggml.pre", before)
	f.set("tokenizer.ggml.tokens", pieces)
	f.set("tokenizer.ggml.token_type", kinds)
	f.set("tokenizer.ggml.merges", merges)
	return f.special(c, raw)
}

// special names the tokens that begin and end a text.
func (f *file) special(c model.Config, raw []byte) error {
	tok, err := tokenizer.ParseWithin(raw, c.VocabSize)
	if err != nil {
		return err
	}
	d := c.Decoder
	framed := tok.EncodeFixed("a", 8)
	if d.Begin >= 0 {
		f.set("tokenizer.ggml.bos_token_id", uint32(d.Begin))
	}
	f.set("tokenizer.ggml.eos_token_id", uint32(d.Ends[0]))
	f.set("tokenizer.ggml.padding_token_id", uint32(c.PadTokenID))
	f.set("tokenizer.ggml.add_bos_token", d.Begin >= 0 && slices.Index(framed, int32(d.Begin)) == 0)
	if d.Chat.Template != "" {
		f.set("tokenizer.chat_template", d.Chat.Template)
	}
	return nil
}
