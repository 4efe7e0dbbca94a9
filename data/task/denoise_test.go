package task

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

// Rows equal those of an independent reading of the definition, with the selection given
// (testdata/denoise.py).
func TestDenoiseEqualsItsDefinition(t *testing.T) {
	raw, err := os.ReadFile("testdata/denoise.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Objective        string
		IDs              []int32
		Places           [][4]int32
		Hidden           []int
		Sequence, Answer int
		Want             struct {
			Tokens        []int32
			Boxes         [][4]int32
			DecoderTokens []int32 `json:"decoder_tokens"`
			Labels        []int32
		}
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	from := func(id, n int32) (ids []int32) {
		for i := range n {
			ids = append(ids, id+i)
		}
		return ids
	}
	s := sentinels{text: from(1000, 100), layout: from(1100, 100), end: from(1200, 100), both: from(1300, 100), at: from(1400, locations), side: 1000}
	cut := 0
	for i, c := range cases {
		o := map[string]objective{"TM": {grows: 4, hide: s.hideText}, "LM": {grows: 2, hide: s.hidePlace}, "TLM": {hide: s.hideBoth}}[c.Objective]
		d := &denoise{form: &answer{sequence: c.Sequence, tokens: c.Answer, config: model.Config{T5: model.T5{End: 1, Boxes: 1001}}}}
		in, at, out := o.rewrite(c.IDs, c.Places, c.Hidden, c.Sequence-1)
		b := NewBatch([]Column{{Name: Tokens, Type: I32, Shape: []int{c.Sequence}}, {Name: Boxes, Type: I32, Shape: []int{c.Sequence, 4}},
			{Name: DecoderTokens, Type: I32, Shape: []int{c.Answer}}, {Name: Labels, Type: I32, Shape: []int{c.Answer}}, {Name: Weights, Type: F32, Shape: []int{c.Answer}}}, 1)
		d.form.source(b, 0, nil, in, at)
		d.form.target(b, 0, out)
		for name, want := range map[string][]int32{Tokens: c.Want.Tokens, Boxes: slices.Concat(flat(c.Want.Boxes)...), DecoderTokens: c.Want.DecoderTokens, Labels: c.Want.Labels} {
			got := b.Int32(name)
			if !slices.Equal(got[:len(want)], want) || slices.Max(append(got[len(want):], 0)) != 0 {
				t.Errorf("document %d, %s: %s are\n%v, want\n%v", i, c.Objective, name, got, want)
			}
		}
		for k, w := range b.Float32(Weights) {
			if (w == 1) != (k < len(c.Want.Labels)) {
				t.Errorf("document %d: token %d weighs %v, %d are written", i, k, w, len(c.Want.Labels))
			}
		}
		if len(in) >= c.Sequence-5 {
			cut++
		}
	}
	if len(cases) < 20 || cut < 3 {
		t.Errorf("%d documents, %d of which are cut", len(cases), cut)
	}
}

func flat(boxes [][4]int32) (out [][]int32) {
	for _, b := range boxes {
		out = append(out, b[:])
	}
	return out
}

// What is hidden is of a device's own randomness, each objective as often, each token with
// its probability, never more than there are sentinels and room for; and always the same
// where a document is scored.
func TestDenoiseDraws(t *testing.T) {
	tok, l, all := documents(t, 1001, 200, 128)
	l.Method.Task = model.TaskPretrain
	l, err := model.NewLayout(l.Config, l.Method, 0)
	if err != nil || l.Method.Task != model.TaskDenoise {
		t.Fatalf("%v, %v", l, err)
	}
	columns, err := Columns(l, 200)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDenoise(columns, tok, l, 200)
	if err != nil {
		t.Fatal(err)
	}
	e := all[0]
	b, kinds := NewBatch(columns, 1), map[string]int{}
	rnd := rand.NewChaCha8([32]byte{1})
	for range 600 {
		if err := d.Draw(rnd, &e, b, 0); err != nil {
			t.Fatal(err)
		}
		for _, c := range b {
			if err := c.Check(1); err != nil {
				t.Fatal(err)
			}
		}
		kinds[strings.TrimRight(tok.Piece(b.Int32(Labels)[0]), "0123456789>")]++
		if at := d.Places(b, 0); len(at) < 3 || b.Int32(Labels)[at[len(at)-1]] != 1 {
			t.Fatalf("%d tokens are written: %v", len(at), b.Int32(Labels))
		}
	}
	if len(kinds) != 3 || min(kinds["<text_"], kinds["<layout_"], kinds["<text_layout_"]) < 150 { // errs once in 10^5
		t.Errorf("objectives %v", kinds)
	}
	l.Method.Objectives = "LM,TLM,LM" // two of three rows hide places
	some, err := newDenoise(columns, tok, l, 200)
	if err != nil {
		t.Fatal(err)
	}
	clear(kinds)
	for range 600 {
		if err := some.Draw(rnd, &e, b, 0); err != nil {
			t.Fatal(err)
		}
		kinds[strings.TrimRight(tok.Piece(b.Int32(Labels)[0]), "0123456789>")]++
	}
	if kinds["<layout_"]+kinds["<text_layout_"] != 600 || kinds["<layout_"] < 340 || kinds["<layout_"] > 460 { // errs once in 10^6
		t.Errorf("objectives %v where LM is named twice and TLM once", kinds)
	}
	for _, bad := range []model.Method{{RMax: 1, Alpha: 1, Task: model.TaskPretrain, Objectives: "MLM"}, {RMax: 1, Alpha: 1, Task: model.TaskPretrain, Objectives: "TM,"},
		{RMax: 1, Alpha: 1, Task: model.TaskAnswer, Objectives: "TM"}, {RMax: 1, Alpha: 1, Task: model.TaskPretrain, Objectives: strings.Repeat("TM,", 64) + "TM"}} {
		if _, err := model.NewLayout(l.Config, bad, 0); err == nil || !strings.Contains(err.Error(), "objectives") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, o := range d.objectives {
		o.most = 1 << 20
		n, hidden := 20_000, 0
		picked, err := o.pick(rnd, n, n)
		if err != nil {
			t.Fatal(err)
		}
		hidden = len(picked)
		p := float64(o.share) / 20
		if math.Abs(float64(hidden)-p*float64(n)) > 5*math.Sqrt(p*(1-p)*float64(n)) || !slices.IsSorted(picked) {
			t.Errorf("%d of %d are hidden, want a share of %v", hidden, n, p)
		}
		o.most = 100
		if picked, err = o.pick(rnd, n, 90); err != nil || len(picked) != 90 || !slices.IsSorted(picked) || len(slices.Compact(picked)) != 90 {
			t.Errorf("%d are hidden where 90 have room, %v", len(picked), err)
		}
		if picked, err = o.pick(rnd, 1, 0); err != nil || !slices.Equal(picked, []int{0}) {
			t.Errorf("of one token %v are hidden, %v", picked, err)
		}
		if _, err = o.pick(bytes.NewReader(nil), 5, 5); err == nil {
			t.Error("coins without randomness")
		}
	}
	one, two := NewBatch(columns, 1), NewBatch(columns, 1)
	if d.Encode(&e, one, 0) != nil || d.Encode(&e, two, 0) != nil || !reflect.DeepEqual(one, two) {
		t.Error("a document is not always scored alike")
	}
	asked := e
	asked.Question = "another?"
	rows, of, err := Rows(d, []dataset.Example{e, asked, all[1], e})
	if err != nil || !slices.Equal(of, []int{0, 2, 3}) || len(rows) != 3 {
		t.Errorf("questions about one document are rows of %v, %v", of, err)
	}
	for _, bad := range []dataset.Example{{Text: "nowhere"}, {Words: []string{"a"}, Boxes: make([][4]uint16, 2)}} {
		if err := d.Encode(&bad, b, 0); err == nil || !strings.Contains(err.Error(), "boxes") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	l.Config.VocabSize = 300
	if _, err := newDenoise(columns, plainTokenizer{tok}, l, 200); err == nil || !strings.Contains(err.Error(), "<text_0>") {
		t.Errorf("a tokenizer without sentinels: %v", err)
	}
}
