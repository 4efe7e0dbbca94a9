package dataset

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/realdata"
)

func readQuestions(t *testing.T, text string) []Example {
	t.Helper()
	set, err := Read(strings.NewReader(text), "a.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var streamed []Example
	if err := Questions(strings.NewReader(text), "a.jsonl", func(e Example) error {
		streamed = append(streamed, e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(set.Labels) != 0 || !reflect.DeepEqual(set.Examples, streamed) {
		t.Errorf("a set of %v, streamed %v", set.Examples, streamed)
	}
	return set.Examples
}

func TestReadQuestions(t *testing.T) {
	got := readQuestions(t, `{"words":["Total","EUR","9.00"],"boxes":[[10,20,110,40],[120,20,180,40],[190,20,300,40]],`+
		`"question":"the total?","answers":["EUR 9.00","9.00"],"provider":"A","user":7}`)
	want := Example{Text: "Total EUR 9.00", Words: []string{"Total", "EUR", "9.00"}, Provider: "A", User: "7", Line: 1,
		Boxes:    [][4]uint16{{10, 20, 110, 40}, {120, 20, 180, 40}, {190, 20, 300, 40}},
		Question: "the total?", Answers: []string{"EUR 9.00", "9.00"}}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("%+v", got)
	}

	// SROIE's layout: lines in pixels, corners in any order; an empty field is not asked.
	got = readQuestions(t, "\n"+`{"width":200,"height":400,"provider":"B","fields":{"total":"9.00","date":"1/2/2018","company":" "},`+
		`"lines":[{"text":"ab  cd","box":[20,40,80,60]},{"text":"9.00","box":[100,380,60,360]}]}`)
	if len(got) != 2 || got[0].Question != "date" || got[1].Question != "total" || got[1].Answers[0] != "9.00" || got[1].Line != 2 {
		t.Fatalf("%+v", got)
	}
	boxes := [][4]uint16{{100, 100, 200, 150}, {300, 100, 400, 150}, {300, 900, 500, 950}}
	if !reflect.DeepEqual(got[1].Words, []string{"ab", "cd", "9.00"}) || !reflect.DeepEqual(got[1].Boxes, boxes) {
		t.Errorf("%q at %v", got[1].Words, got[1].Boxes)
	}

	// SQuAD's, and several questions of one text.
	got = readQuestions(t, `{"context":"it rains","question":"what?","answers":{"text":["rains"],"answer_start":[3]}}`+"\n"+
		`{"text":"it rains","questions":[{"question":"what?","answer":"rains"},{"question":"when?"}]}`)
	if len(got) != 3 || got[0].Answers[0] != "rains" || got[1].Answers[0] != "rains" || got[2].Answers != nil || got[2].Text != "it rains" {
		t.Errorf("%+v", got)
	}

	// A labelled text that has a column of that name stays one.
	set, err := Read(strings.NewReader(`{"text":"a","label":"x","question":"q"}`), "a.jsonl")
	if err != nil || len(set.Labels) != 1 {
		t.Errorf("%+v, %v", set, err)
	}
}

func TestReadQuestionsRefuses(t *testing.T) {
	page := `"words":["a","b"],"boxes":[[0,0,9,9],[9,0,19,9]]`
	for text, want := range map[string]string{
		`{"question":"q","answers":["a"]}`:                                                       "words",
		`{"words":[],"question":"q"}`:                                                            "without words",
		`{"words":["a"," "],"question":"q"}`:                                                     "word 2",
		`{"words":["a"],"boxes":[[0,0,9]],"question":"q"}`:                                       "3 numbers",
		`{"words":["a"],"boxes":[[0,0,9,1001]],"question":"q"}`:                                  "beyond the page",
		`{"words":["a"],"boxes":[[0,-1,9,10]],"question":"q"}`:                                   "beyond the page",
		`{"words":["a"],"boxes":[],"question":"q"}`:                                              "0 boxes for 1 words",
		`{"words":["a"],"boxes":[[0,0,9,9]],"width":5,"question":"q"}`:                           "width",
		`{"words":["a"],"boxes":[[0,0,9,9]],"width":0,"height":1,"question":"q"}`:                "width",
		`{` + page + `,"question":" "}`:                                                          "question is empty",
		`{` + page + `,"question":7}`:                                                            "must be a string",
		`{` + page + `,"question":"q","answers":[""]}`:                                           "answer 1",
		`{` + page + `,"question":"q","answers":7}`:                                              "answers",
		`{` + page + `,"questions":[]}`:                                                          "0 questions",
		`{` + page + `,"fields":{"a":" "}}`:                                                      "all empty",
		`{` + page + `,"fields":{"a":1}}`:                                                        "object of strings",
		`{` + page + `,"question":"` + strings.Repeat("q", MaxQuestion+1) + `"}`:                 "4097 bytes",
		`{` + page + `,"questions":[` + strings.Repeat(`{"question":"q"},`, 256) + `{}]}`:        "257 questions",
		`{` + page + `,"question":"q","answers":[` + strings.Repeat(`"a",`, MaxAnswers) + `""]}`: "65 answers",
		`{"lines":[{"text":"a"}],"question":"q"}`:                                                "line 1",
	} {
		_, err := Read(strings.NewReader(text), "a.jsonl")
		if at := new(LineError); !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
	mixed := `{"text":"a","label":"x"}` + "\n" + `{"text":"a","question":"q"}`
	if _, err := Read(strings.NewReader(mixed), "a.jsonl"); err == nil || !strings.Contains(err.Error(), "others have labels") {
		t.Error(err)
	}
	if err := Questions(strings.NewReader(""), "a.csv", nil); err == nil {
		t.Error("a table of questions")
	}
	if err := Questions(strings.NewReader(`{"text":"a"}`), "", nil); err == nil || !strings.Contains(err.Error(), "question") {
		t.Error(err)
	}
	// Questions in a job of labels, and the other way.
	set, err := Read(strings.NewReader(`{"text":"a","question":"q"}`), "a.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Relabel([]string{"x", "y"}); err == nil || !strings.Contains(err.Error(), "a.jsonl:1") {
		t.Error(err)
	}
	if same, err := set.Relabel(nil); err != nil || len(same.Examples) != 1 {
		t.Error(err)
	}
}

// Real receipts, read as they are.
func TestReadReceipts(t *testing.T) {
	path := realdata.Path(t, "sroie/receipts_dev.jsonl.gz")
	set, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	providers := map[string]bool{}
	for _, e := range set.Examples {
		providers[e.Provider] = true
		if len(e.Words) != len(e.Boxes) || len(e.Answers) != 1 {
			t.Fatalf("%+v", e)
		}
	}
	if len(set.Examples) != 4*500-2 || len(providers) != 209 {
		t.Errorf("%d questions of %d providers", len(set.Examples), len(providers))
	}
}

func FuzzQuestions(f *testing.F) {
	f.Add(`{"words":["a"],"boxes":[[0,0,9,9]],"question":"q","answers":["a"]}`)
	f.Add(`{"lines":[{"text":"a b","box":[0,0,9,9]}],"width":9,"height":9,"fields":{"q":"a"}}`)
	f.Add(`{"context":"a","questions":[{"question":"q","answers":{"text":["a"]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		set, err := Read(strings.NewReader(text), "a.jsonl")
		if err != nil || len(set.Labels) > 0 {
			return
		}
		if len(set.Examples) > MaxQuestions*(1+strings.Count(text, "\n")) {
			t.Errorf("%d questions of %d bytes", len(set.Examples), len(text))
		}
		for _, e := range set.Examples {
			if e.Question == "" || len(e.Boxes) > 0 && len(e.Boxes) != len(e.Words) || e.Text == "" {
				t.Errorf("%+v", e)
			}
			for _, b := range e.Boxes {
				if b[0] > b[2] || b[1] > b[3] || b[2] > PageSide || b[3] > PageSide {
					t.Errorf("box %v", b)
				}
			}
		}
	})
}
