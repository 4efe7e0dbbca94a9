package model

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
)

// GenerationConfigFile is where transformers keeps how a model writes.
const GenerationConfigFile = "generation_config.json"

// settleEnds puts the end that the tokenizer itself names first, since that is what texts are taught to end with (TRL
// appends it), and adds those that generation_config.json has: transformers ends a text at any of them. tokenizer is
// tokenizer.json, size is that of the vocabulary. More than Ends has room for are left out, the last ones first.
func (d *Decoder) settleEnds(fsys fs.FS, tokenizer []byte, size int) error {
	var names struct {
		End mark `json:"eos_token"`
	}
	if err := optionalJSON(fsys, TokenizerConfigFile, &names); err != nil {
		return err
	}
	var writes struct {
		End json.RawMessage `json:"eos_token_id"`
	}
	if err := optionalJSON(fsys, GenerationConfigFile, &writes); err != nil {
		return err
	}
	var all []int
	add := func(id int) {
		if id >= 0 && id < size && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	var file struct {
		Added []struct {
			ID      int    `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
	}
	if names.End != "" && json.Unmarshal(tokenizer, &file) == nil { // what is wrong with it is said when it is used
		for _, t := range file.Added {
			if t.Content == string(names.End) {
				add(t.ID)
			}
		}
	}
	for _, id := range d.Ends {
		add(id)
	}
	if len(writes.End) > 0 && string(writes.End) != "null" {
		var more []int
		one := 0
		if json.Unmarshal(writes.End, &one) == nil {
			more = []int{one}
		} else if json.Unmarshal(writes.End, &more) != nil {
			return fmt.Errorf("%w: %s: eos_token_id is %.80s, want a token or a list", ErrConfig, GenerationConfigFile, writes.End)
		}
		for _, id := range more {
			add(id)
		}
	}
	for i := range d.Ends {
		d.Ends[i] = all[0]
		if i < len(all) {
			d.Ends[i] = all[i]
		}
	}
	return nil
}
