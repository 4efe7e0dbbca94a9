//go:build !js || full

package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// causal is what comes next in a text, token by token: places are those of the tokens whose
// next one is told, labels the tokens that come. A text is framed as the base's tokenizer
// does, and ends with the base's end. Of a prompt with its completion the completion is told
// alone: the prompt is read.
type causal struct {
	columns       []Column
	tok           tokenizer.Tokenizer
	before, after []int32 // special tokens around a text
	pad           int32
	sequence      int
	ends          model.Ends
	talk          *ChatTemplate // nil if the base lays no conversations out
	talkless      error         // and why
}

var causalKind = kind{columns: causalColumns, takes: []dataset.Form{dataset.FormBare, dataset.FormTexts, dataset.FormLists, dataset.FormWords, dataset.FormPrompts, dataset.FormTalks},
	make: func(p parts) (Task, error) {
		c := &causal{columns: p.columns, tok: p.tok, sequence: p.sequence, ends: p.layout.Config.Decoder.Ends, pad: int32(p.layout.Config.PadTokenID)}
		c.talk, c.talkless = NewChatTemplate(p.base)
		c.before, c.after = around(p.tok)
		end := int32(p.layout.Config.Decoder.Ends[0])
		if len(c.after) == 0 || c.after[len(c.after)-1] != end {
			c.after = append(c.after[:len(c.after):len(c.after)], end)
		}
		if len(c.before)+len(c.after) >= c.sequence {
			return nil, fmt.Errorf("task: sequences of %d tokens have no room for a text", c.sequence)
		}
		return c, nil
	}}

func causalColumns(l *model.Layout, sequence int) []Column {
	k := max(1, sequence-1)
	return []Column{
		{Name: Tokens, Type: I32, Shape: []int{sequence}, Limit: l.Config.VocabSize},
		{Name: Places, Type: I32, Shape: []int{k}, Limit: sequence},
		{Name: Labels, Type: I32, Shape: []int{k}, Limit: l.Config.VocabSize},
		{Name: Weights, Type: F32, Shape: []int{k}},
	}
}

func (c *causal) Columns() []Column { return c.columns }

// parts are an example's tokens: those that are only read, and those that are told.
func (c *causal) parts(e *dataset.Example) (read, told []int32, err error) {
	switch {
	case e.Form().Textless():
		return nil, nil, errors.New("it is an image or a recording, and the job reads texts")
	case e.Completion != "":
		read = c.Prompt(e.Prompt)
		if told = append(c.tok.Encode(e.Completion), c.after...); len(read) == 0 {
			return nil, nil, errors.New("a prompt has no tokens, and the base's tokenizer puts none before it")
		}
		return read, told, nil
	}
	if told = c.tok.Encode(textOf(e)); len(told) == 0 {
		return nil, nil, errors.New("a text has no tokens")
	}
	if !e.Continued {
		told = append(told, c.after...)
	}
	if len(c.before) == 0 { // nothing tells the first token
		return told[:1], told[1:], nil
	}
	return c.before, told, nil
}

// Split cuts a text where words begin into parts that fit; the last alone ends. A prompt with
// its completion stays one; a conversation does unless the template rewrites earlier turns.
func (c *causal) Split(e *dataset.Example) ([]dataset.Example, error) {
	room := c.sequence - len(c.before) - len(c.after)
	text := textOf(e)
	if e.Messages != "" && c.talk != nil {
		return c.talk.rows(e)
	}
	if e.Completion != "" || e.Messages != "" || len(c.tok.Encode(text)) <= room {
		return []dataset.Example{*e}, nil
	}
	var parts []dataset.Example
	from, used := 0, 0
	end := func(to int) {
		part := *e
		part.Text, part.Words, part.Tags, part.Boxes, part.Continued = text[from:to], nil, nil, nil, to < len(text)
		parts, from, used = append(parts, part), to, 0
	}
	for at := 0; at < len(text); {
		n := wordEnd(text[at:]) // with the white space before it
		tokens := len(c.tok.Encode(text[at : at+n]))
		if used > 0 && used+tokens > room {
			end(at)
		}
		at, used = at+n, used+tokens
	}
	end(len(text))
	return parts, nil
}

// wordEnd is the end of the first word of a text.
func wordEnd(text string) int {
	begun := false
	for i, r := range text {
		if unicode.IsSpace(r) && begun {
			return i
		}
		begun = begun || !unicode.IsSpace(r)
	}
	return len(text)
}

// fitted are the parts that there is room for: a text is cut at its end, of a prompt with what
// is written behind it the prompt's beginning is.
func (c *causal) fitted(e *dataset.Example) (read, told []int32, err error) {
	if read, told, err = c.parts(e); err != nil {
		return nil, nil, err
	}
	if len(told) >= c.sequence {
		if e.Completion != "" {
			return nil, nil, fmt.Errorf("the completion has %d tokens, sequences have %d: raise adapter.sequence, or shorten it", len(told), c.sequence)
		}
		told = told[:c.sequence-1]
	}
	if over := len(read) + len(told) - c.sequence; over > 0 {
		if e.Completion == "" {
			told = told[:len(told)-over]
		} else {
			keep := min(len(c.before), len(read)-over-1)
			read = append(read[:keep:keep], read[keep+over:]...)
		}
	}
	return read, told, nil
}

// Encode encodes as much as fits.
func (c *causal) Encode(e *dataset.Example, b Batch, row int) error {
	if e.Messages != "" {
		return c.encodeTalk(e, b, row)
	}
	read, told, err := c.fitted(e)
	if err != nil {
		return err
	}
	k := c.columns[1].Size()
	tokens := b.Int32(Tokens)[row*c.sequence:][:c.sequence]
	places, labels, weights := b.Int32(Places)[row*k:][:k], b.Int32(Labels)[row*k:][:k], b.Float32(Weights)[row*k:][:k]
	clear(places)
	clear(labels)
	clear(weights)
	n := copy(tokens, read)
	for i, id := range told {
		tokens[n+i] = id
		places[i], labels[i], weights[i] = int32(n+i-1), id, 1
	}
	for i := n + len(told); i < c.sequence; i++ {
		tokens[i] = c.pad
	}
	return nil
}

// encodeTalk writes a conversation, of which what assistants say is told. One that is too long
// loses its beginning.
func (c *causal) encodeTalk(e *dataset.Example, b Batch, row int) error {
	if c.talk == nil {
		return c.talkless
	}
	ids, told, err := c.talk.learnt(e)
	if err != nil {
		return err
	}
	if over := len(ids) - c.sequence; over > 0 {
		ids, told = ids[over:], told[over:]
	}
	k := c.columns[1].Size()
	tokens := b.Int32(Tokens)[row*c.sequence:][:c.sequence]
	places, labels, weights := b.Int32(Places)[row*k:][:k], b.Int32(Labels)[row*k:][:k], b.Float32(Weights)[row*k:][:k]
	clear(places)
	clear(labels)
	clear(weights)
	at := 0
	for i := range tokens {
		tokens[i] = c.pad
		if i < len(ids) {
			tokens[i] = ids[i]
		}
		if i > 0 && i < len(ids) && told[i] {
			places[at], labels[at], weights[at] = int32(i-1), ids[i], 1
			at++
		}
	}
	if at == 0 {
		return fmt.Errorf("the last %d tokens of a conversation, which sequences have room for, are none of an assistant's: raise adapter.sequence", c.sequence)
	}
	return nil
}

// Places are the positions whose next token is predicted.
func (c *causal) Places(b Batch, row int) []int { at, _ := MaskedPlaces(b, row); return at }

// Truths are the tokens that come next there.
func (c *causal) Truths(_ *dataset.Example, b Batch, row int) (out [][]int) {
	_, next := MaskedPlaces(b, row)
	for _, id := range next {
		out = append(out, []int{int(id)})
	}
	return out
}

func (c *causal) Choice() Choice                         { return OneOf }
func (c *causal) Open(e dataset.Example) dataset.Example { return e }

func (c *causal) Figures(s *Score, _, _ [][]int, _ []string) {
	p := math.Exp(s.Loss)
	s.Perplexity = &p
	s.Notes = append(s.Notes, fmt.Sprintf("perplexity %.2f, loss %.3f nats, of the tokens that come next, of which the accuracy is", p, s.Loss))
}

// A Prompter is a Task whose base writes texts after a prompt.
type Prompter interface {
	Task
	// Prompt returns a text's tokens, as they are before what is written.
	Prompt(text string) []int32
	// Reply returns what an example says is to be written, and the tokens before it, as Encode writes them: a prompt's
	// completion, or the last reply of a conversation. right is "" for a text, of which all is told.
	Reply(e *dataset.Example) (before []int32, right string, err error)
	// Text decodes tokens.
	Text(ids []int32) string
}

func (c *causal) Prompt(text string) []int32 {
	return append(c.before[:len(c.before):len(c.before)], c.tok.Encode(text)...)
}

func (c *causal) Reply(e *dataset.Example) (before []int32, right string, err error) {
	switch {
	case e.Messages != "" && c.talk == nil:
		return nil, "", c.talkless
	case e.Messages != "":
		return c.lastReply(e)
	case e.Completion == "":
		return nil, "", nil
	}
	before, _, err = c.fitted(e)
	return before, e.Completion, err
}

// lastReply is Reply of a conversation: it ends where the model's end is told.
func (c *causal) lastReply(e *dataset.Example) (before []int32, right string, err error) {
	rows, err := c.talk.rows(e)
	if err != nil {
		return nil, "", err
	}
	ids, told, err := c.talk.learnt(&rows[len(rows)-1])
	if err != nil {
		return nil, "", err
	}
	if over := len(ids) - c.sequence; over > 0 {
		ids, told = ids[over:], told[over:]
	}
	last := len(told)
	for last > 0 && !told[last-1] {
		last--
	}
	from := last
	for from > 0 && told[from-1] {
		from--
	}
	if from == 0 {
		return nil, "", fmt.Errorf("the last %d tokens of a conversation, which sequences have room for, are no reply with what is before it: raise adapter.sequence", c.sequence)
	}
	reply := ids[from:last]
	if end := slices.IndexFunc(reply, c.ends.Has); end >= 0 {
		reply = reply[:end]
	}
	return ids[:from], c.tok.Decode(reply), nil
}

// Begin writes a text's tokens, as a prompt.
func (c *causal) Begin(e *dataset.Example, b Batch) (room int, err error) {
	ids := c.Prompt(e.Text)
	switch {
	case len(ids) == 0:
		return 0, errors.New("a text has no tokens to write behind")
	case len(ids) >= c.sequence:
		return 0, fmt.Errorf("a text has %d tokens, and with what is written behind it %d at most", len(ids), c.sequence)
	}
	tokens := b.Int32(Tokens)
	for i := copy(tokens, ids); i < c.sequence; i++ {
		tokens[i] = c.pad
	}
	b.Int32(Places)[0] = int32(len(ids) - 1)
	return c.sequence - len(ids), nil
}

func (c *causal) Append(b Batch, _ int, id int32) {
	at := b.Int32(Places)
	if next := int(at[0]) + 1; next < c.sequence {
		b.Int32(Tokens)[next], at[0] = id, int32(next)
	}
}

func (c *causal) End(id int32) bool { return c.ends.Has(id) }

func (c *causal) Text(ids []int32) string { return c.tok.Decode(ids) }
