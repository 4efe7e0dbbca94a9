//go:build !js || full

package task

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// transcribe is what is said in a recording, character by character: connectionist temporal
// classification (see Spelling). Labels are the text's characters, filled up with the blank.
// A recording is read whole, or refused: a text says nothing of where it was cut.
type transcribe struct {
	columns    []Column
	speech     model.Speech
	characters *tokenizer.Characters
	spelling   Spelling
	letters    []string // that are read as a character each
}

var transcribeKind = kind{columns: transcribeColumns, takes: []dataset.Form{dataset.FormTranscripts}, textless: true, make: func(p parts) (Task, error) {
	c := p.layout.Config
	characters, err := tokenizer.ParseCharacters(p.base.Tokenizer)
	if err != nil {
		return nil, err
	}
	if characters.Size() > c.VocabSize || int(characters.Blank()) != c.PadTokenID {
		return nil, fmt.Errorf("task: the base has %d characters with the blank at %d, its configuration %d with it at %d",
			characters.Size(), characters.Blank(), c.VocabSize, c.PadTokenID)
	}
	t := &transcribe{columns: p.columns, speech: c.Speech, characters: characters, letters: characters.Letters(),
		spelling: Spelling{Characters: c.VocabSize, Blank: c.PadTokenID, Mean: c.Speech.Reduction == "mean"}}
	if len(t.letters) == 0 {
		return nil, errors.New("task: the base's vocab.json has no character but special tokens")
	}
	return t, nil
}}

// mostCharacters is the longest text that frames may spell: half as many characters, so 25 a
// second with frames of 20 ms.
func mostCharacters(frames int) int { return (frames + 1) / 2 }

func transcribeColumns(l *model.Layout, sequence int) []Column {
	return []Column{
		{Name: Samples, Type: F32, Shape: []int{l.Config.Speech.Samples(sequence)}},
		{Name: Keep, Type: F32, Shape: []int{sequence}},
		{Name: Labels, Type: I32, Shape: []int{mostCharacters(sequence)}, Limit: l.Config.VocabSize},
		{Name: Weights, Type: F32},
	}
}

func (t *transcribe) Columns() []Column { return t.columns }

func (t *transcribe) Encode(e *dataset.Example, b Batch, row int) error {
	if e.Form() != dataset.FormTranscripts {
		return fmt.Errorf("it holds %s, and the job learns texts: give each recording a \"text\"", e.Form().Description())
	}
	ids, err := t.characters.Encode(e.Text)
	if err != nil {
		return err
	}
	n, frames := t.columns[0].Size(), t.columns[1].Size()
	keep := b[1].F32[row*frames : (row+1)*frames]
	if err := hear(e.Recording, t.speech, b[0].F32[row*n:(row+1)*n], keep, true); err != nil {
		return err
	}
	own := 0
	for _, k := range keep {
		own += int(k)
	}
	most := t.columns[2].Size()
	switch need := t.spelling.Frames(ids); {
	case len(ids) == 0:
		return errors.New("its text has no character to learn")
	case len(ids) > most:
		return fmt.Errorf("its text has %d characters, and a recording of at most %d frames may have %d", len(ids), frames, most)
	case need > own:
		return fmt.Errorf("its text cannot be spelt: %d characters, a letter that occurs twice parted by a blank, need %d frames, and the recording has %d: is it of another recording?",
			len(ids), need, own)
	}
	labels := b[2].I32[row*most : (row+1)*most]
	for i := range labels {
		if labels[i] = int32(t.spelling.Blank); i < len(ids) {
			labels[i] = ids[i]
		}
	}
	b[3].F32[row] = 1
	return nil
}

func (t *transcribe) Places(Batch, int) []int { return []int{0} }

func (t *transcribe) Truths(_ *dataset.Example, b Batch, row int) [][]int {
	most := b[2].Size()
	right := []int{}
	for _, id := range b[2].I32[row*most : (row+1)*most] {
		if int(id) != t.spelling.Blank {
			right = append(right, int(id))
		}
	}
	return [][]int{right}
}

func (t *transcribe) Choice() Choice { return t.spelling }

// Open gives a recording a text that any frame spells.
func (t *transcribe) Open(e dataset.Example) dataset.Example {
	e.Text = t.letters[0]
	return e
}

func (t *transcribe) Any(below func(n int) int) string {
	text := ""
	for range 1 + below(mostAny) {
		text += t.letters[below(len(t.letters))]
	}
	return text
}

// mostAny is the length of a text that replaces an unknown one.
const mostAny = 3

func (t *transcribe) Text(labels []int) string {
	ids := make([]int32, len(labels))
	for i, l := range labels {
		ids[i] = int32(l)
	}
	return t.characters.Text(ids)
}

func (t *transcribe) Probability(scores []float32, labels []int) float64 {
	return math.Exp(t.spelling.LogProbability(scores, labels))
}

func (t *transcribe) Beams(n int) (Transcriber, error) {
	if n < 1 || n > MostBeams {
		return nil, fmt.Errorf("%d beams, want 1..%d", n, MostBeams)
	}
	with := *t
	with.spelling.Beams = n
	return &with, nil
}

// Figures are the word and character error rates. The accuracy is of words: 1 less their
// error rate, so that the best rank is that of the fewest errors; below 0 where more errors are
// made than there are words.
func (t *transcribe) Figures(s *Score, said, right [][]int, _ []string) {
	var words, characters Edits
	for i := range said {
		text, truth := t.Text(said[i]), t.Text(right[i])
		words, characters = words.Add(WordEdits(text, truth)), characters.Add(CharacterEdits(text, truth))
	}
	wer, cer := words.Rate(), characters.Rate()
	whole := s.Accuracy
	s.Accuracy, s.MacroF1, s.WordErrors, s.CharacterErrors = 1-wer, 0, &wer, &cer
	s.Notes = append(s.Notes, fmt.Sprintf("word error rate %.1f %% of %d words: %d other, %d missing, %d too many; character error rate %.1f %%; %.1f %% of texts wholly right",
		100*wer, words.Of, words.Substitutions, words.Deletions, words.Insertions, 100*cer, 100*whole))
}
