package task

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

// transcribing is the task over a base that writes a, b and spaces, of nine frames.
func transcribing(t *testing.T, change func(c *model.Config, doc map[string]any)) (Task, error) {
	t.Helper()
	c := model.NewHubert(8, 16, 1)
	c.Speech.Groups, c.Speech.Positions, c.Speech.Masked = 4, 16, true
	text, err := c.WithCharacters([]string{"ab ba"})
	if err != nil {
		t.Fatal(err)
	}
	doc := map[string]any{}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&c, doc)
	}
	if text, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	lay, err := model.NewLayout(c, model.Method{RMax: 1, Alpha: 1, Task: model.TaskTranscribe}, 0)
	if err != nil {
		return nil, err
	}
	return New(&model.Base{Config: c, Tokenizer: text}, lay, 9)
}

func spoken(t *testing.T, frames int, text string) dataset.Example {
	t.Helper()
	s := &audio.Sound{Rate: 16_000, Samples: make([]float32, 400+(frames-1)*320)}
	for i := range s.Samples {
		s.Samples[i] = 0.3 + 0.1*float32(math.Sin(float64(i)/5))
	}
	r, err := dataset.Recorded(s)
	if err != nil {
		t.Fatal(err)
	}
	return dataset.Example{Recording: r, Text: text}
}

func TestTranscribeRows(t *testing.T) {
	k, err := transcribing(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := EncodeAll(k, []dataset.Example{spoken(t, 9, "ab a"), spoken(t, 3, "aa")})
	if err != nil {
		t.Fatal(err)
	}
	// <pad>, <unk>, |, a, b
	if got := rows.Int32(Labels); !slices.Equal(got, []int32{3, 4, 2, 3, 0, 3, 3, 0, 0, 0}) {
		t.Errorf("labels %v", got)
	}
	if got := rows.Float32(Keep); !slices.Equal(got, []float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("keep %v", got)
	}
	l := k.(Transcriber)
	if got := l.Truths(nil, rows, 0); len(got) != 1 || l.Text(got[0]) != "ab a" {
		t.Errorf("right is %v", got)
	}
	open := l.Open(spoken(t, 2, ""))
	if err := k.Encode(&open, rows, 1); err != nil {
		t.Errorf("a recording of which nobody knows what is said: %v", err)
	}
	drawn := 0
	if text := l.Any(func(n int) int { drawn++; return n - 1 }); text != "bbb" || drawn != 4 {
		t.Errorf("any text is %q of %d draws", text, drawn)
	}
}

// What cannot be learnt is refused, and said so.
func TestTranscribeRefuses(t *testing.T) {
	if _, err := transcribing(t, func(_ *model.Config, doc map[string]any) { doc["unk_token"] = "" }); err == nil {
		t.Fatal("a special token without a name is one of several characters")
	}
	k, err := transcribing(t, func(_ *model.Config, doc map[string]any) { delete(doc["vocab"].(map[string]any), "<unk>") })
	if err != nil {
		t.Fatal(err)
	}
	word := spoken(t, 3, "")
	word.Label = 1
	for want, e := range map[string]dataset.Example{
		"has 3: is it of another recording": spoken(t, 3, "aab"),
		"need 4 frames":                     spoken(t, 3, "aab"),
		"5":                                 spoken(t, 9, "ababab"),
		"character 'x'":                     spoken(t, 9, "ax"),
		"lasts 0.225 s, and a sequence of 9 frames has room for 0.205 s": spoken(t, 11, "a"),
		"give each recording a \"text\"":                                 word,
		"holds texts":                                                    {Text: "ab"},
	} {
		if err := k.Encode(&e, NewBatch(k.Columns(), 1), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// The row's line is said by anyone who reads the file.
	bad := spoken(t, 3, "aab")
	bad.Line = 7
	if _, err := EncodeAll(k, []dataset.Example{spoken(t, 9, "a"), bad}); err == nil || !strings.Contains(err.Error(), "line 7") {
		t.Errorf("%v, want the line", err)
	}
	for name, change := range map[string]func(c *model.Config, doc map[string]any){
		"characters":  func(c *model.Config, _ map[string]any) { c.VocabSize-- },
		"blank":       func(c *model.Config, _ map[string]any) { c.PadTokenID = 1 },
		"no char":     func(c *model.Config, _ map[string]any) { c.VocabSize, c.PadTokenID = 0, 0 },
		"but special": func(_ *model.Config, doc map[string]any) { doc["vocab"] = map[string]int{"<pad>": 0, "|": 1} },
	} {
		if _, err := transcribing(t, change); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Scores are of words and characters, and best where the fewest are wrong.
func TestTranscribeFigures(t *testing.T) {
	k, err := transcribing(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := k.(Transcriber)
	right := [][]int{{3, 4, 2, 3}, {4}}
	s := ScoreOf(l, [][]int{{3, 4, 2, 4}, {4}}, right, 3, 5, nil)
	if s.WordErrors == nil || math.Abs(*s.WordErrors-1.0/3) > 1e-12 || math.Abs(*s.CharacterErrors-0.2) > 1e-12 || math.Abs(s.Accuracy-2.0/3) > 1e-12 || s.Loss != 1.5 {
		t.Errorf("%+v", s)
	}
	if worse := ScoreOf(l, [][]int{{3, 2, 3, 2, 3, 2, 3}, {}}, right, 3, 5, nil); worse.Accuracy >= 0 || *worse.WordErrors <= 1 {
		t.Errorf("more errors than words: %+v", worse)
	}
	if few, err := l.Beams(0); err == nil {
		t.Errorf("no beams: %v", few)
	}
	if many, err := l.Beams(8); err != nil || many.Choice().(Spelling).Beams != 8 || l.Choice().(Spelling).Beams != 0 {
		t.Errorf("%v, %v", many, err)
	}
}
