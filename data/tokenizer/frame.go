package tokenizer

import (
	"encoding/json"
	"fmt"
)

// framing is the part of a tokenizer.json that frames a text: the post-processor and
// the names of the special tokens.
type framing struct {
	PostProc    *surround    `json:"post_processor"`
	AddedTokens []addedToken `json:"added_tokens"`
	Padding     *struct {
		ID int32 `json:"pad_id"`
	} `json:"padding"`
}

// surround is a post-processor, or a Sequence of some.
type surround struct {
	Type    string                   `json:"type"`
	Sep     []json.RawMessage        `json:"sep"`
	Cls     []json.RawMessage        `json:"cls"`
	Single  []templatePart           `json:"single"`
	Special map[string]templateToken `json:"special_tokens"`
	List    []surround               `json:"processors"`
}

// one is the only part of a Sequence that puts tokens around a text.
func (p *surround) one() (*surround, error) {
	if p == nil || p.Type != "Sequence" {
		return p, nil
	}
	var found *surround
	for i := range p.List {
		switch part := &p.List[i]; {
		case part.Type == "ByteLevel":
		case found != nil || part.Type == "Sequence":
			return nil, fmt.Errorf("%w: post_processor is a Sequence with %s behind %s: one is supported that puts tokens around a text", ErrVocab,
				part.Type, found.name())
		default:
			found = part
		}
	}
	return found, nil
}

func (p *surround) name() string {
	if p == nil {
		return "none"
	}
	return p.Type
}

type templatePart struct {
	Special *struct {
		ID string `json:"id"`
	} `json:"SpecialToken"`
	Sequence *struct {
		ID string `json:"id"`
	} `json:"Sequence"`
}

type templateToken struct {
	IDs []int32 `json:"ids"`
}

// padNames are the spellings of padding, in the order they are looked for.
var padNames = []string{"<pad>", Pad, "<|pad|>", "<|endoftext|>"}

// parse makes the frame; every id must be below vocab.
func (d framing) parse(vocab int) (frame, error) {
	var f frame
	var err error
	if f.before, f.after, err = d.around(); err != nil {
		return f, err
	}
	if f.pad = d.padding(); f.pad < noPadding {
		return f, fmt.Errorf("%w: padding has the id %d", ErrVocab, f.pad)
	}
	for _, ids := range [][]int32{f.before, f.after, {max(f.pad, 0)}} {
		for _, id := range ids {
			if id < 0 || int(id) >= vocab {
				return f, fmt.Errorf("%w: the special token %d is outside of the %d pieces", ErrVocab, id, vocab)
			}
		}
	}
	if n := len(f.before) + len(f.after); n > maxFrame {
		return f, fmt.Errorf("%w: post_processor puts %d special tokens around a text, the limit is %d", ErrVocab, n, maxFrame)
	}
	return f, nil
}

func (d framing) around() (before, after []int32, err error) {
	p, err := d.PostProc.one()
	if err != nil || p == nil || p.Type == "ByteLevel" { // which only moves offsets
		return nil, nil, err
	}
	switch p.Type {
	case "BertProcessing", "RobertaProcessing":
		cls, err := pairID(p.Cls)
		if err != nil {
			return nil, nil, err
		}
		sep, err := pairID(p.Sep)
		return []int32{cls}, []int32{sep}, err
	case "TemplateProcessing":
		seen := false
		for _, part := range p.Single {
			switch {
			case part.Sequence != nil:
				seen = true
			case part.Special != nil:
				ids := p.Special[part.Special.ID].IDs
				if len(ids) == 0 {
					return nil, nil, fmt.Errorf("%w: post_processor names the special token %.40q, which has no ids", ErrVocab, part.Special.ID)
				}
				if seen {
					after = append(after, ids...)
				} else {
					before = append(before, ids...)
				}
			}
		}
		return before, after, nil
	}
	return nil, nil, fmt.Errorf("%w: post_processor is %.40q, want BertProcessing, RobertaProcessing, TemplateProcessing or ByteLevel", ErrVocab, p.Type)
}

// pairID is the id of a special token written as ["<s>", 0].
func pairID(pair []json.RawMessage) (id int32, err error) {
	if len(pair) == 2 {
		if json.Unmarshal(pair[1], &id) == nil {
			return id, nil
		}
	}
	return 0, fmt.Errorf("%w: post_processor: a special token must be a pair of name and id", ErrVocab)
}

// noPadding is the padding of a file that has none, as those of Llama 3.
const noPadding = -1

func (d framing) padding() int32 {
	if d.Padding != nil {
		return d.Padding.ID
	}
	for _, name := range padNames {
		for _, t := range d.AddedTokens {
			if t.Content == name {
				return t.ID
			}
		}
	}
	return noPadding
}

// vocabulary lists pieces by id from a model's vocabulary and the added tokens,
// which may lie beyond it.
func vocabulary(vocab map[string]int32, added []addedToken) ([]string, error) {
	last := int32(-1)
	all := make(map[string]int32, len(vocab)+len(added))
	for p, id := range vocab {
		all[p] = id
	}
	for _, t := range added {
		if id, ok := all[t.Content]; ok && id != t.ID {
			return nil, fmt.Errorf("%w: added_tokens gives %.40q the id %d, the vocabulary %d", ErrVocab, t.Content, t.ID, id)
		}
		all[t.Content] = t.ID
	}
	for _, id := range all {
		last = max(last, id)
	}
	if int(last) >= maxVocab || len(all) > maxVocab {
		return nil, fmt.Errorf("%w: ids up to %d, the limit is %d", ErrVocab, last, maxVocab-1)
	}
	pieces := make([]string, last+1)
	for p, id := range all {
		switch {
		case id < 0 || pieces[id] != "":
			return nil, fmt.Errorf("%w: id %d of %.40q is negative or used twice", ErrVocab, id, p)
		case p == "" || len(p) > maxPieceBytes:
			return nil, fmt.Errorf("%w: piece %d (%.40q) must be 1..%d bytes", ErrVocab, id, p, maxPieceBytes)
		}
		pieces[id] = p
	}
	return pieces, nil
}
