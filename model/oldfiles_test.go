package model

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Folders older than tokenizer.json are read with the files that they have; lab/bench/interop
// holds the ids to those of transformers.
func TestLoadBaseReadsOlderTokenizers(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const vocab = "[PAD]\n[UNK]\r\n[CLS]\n[SEP]\n[MASK]\na\n##b\n"
	pairs := map[string]*fstest.MapFile{PairsFile: file(`{"<s>":0,"<pad>":1,"</s>":2,"a":3,"b":4,"ab":5,"<mask>":6}`),
		MergesFile: file("#version: 0.2\na b\n")}
	for name, c := range map[string]struct {
		kind  string
		files map[string]*fstest.MapFile
		want  []string // in the tokenizer, or in the error
		bad   bool
	}{
		"vocab.txt": {"bert", map[string]*fstest.MapFile{VocabFile: file(vocab)},
			[]string{`"##b":6`, `"lowercase":true`, `["[SEP]",3]`, `"content":"[MASK]","id":4`}, false},
		"cased": {"distilbert", map[string]*fstest.MapFile{VocabFile: file(vocab), TokenizerConfigFile: file(`{"do_lower_case":false}`)},
			[]string{`"lowercase":false`}, false},
		"pairs": {"roberta", pairs, []string{`"merges":["a b"]`, `"content":"\u003cmask\u003e","id":6,"lstrip":true`, `["\u003cs\u003e",0]`}, false},
		"added that it has": {"bert", map[string]*fstest.MapFile{VocabFile: file(vocab), AddedTokensFile: file(`{"[MASK]":4}`)},
			[]string{`"##b":6`}, false},
		"added": {"bert", map[string]*fstest.MapFile{VocabFile: file(vocab), AddedTokensFile: file(`{"new":7}`)}, []string{AddedTokensFile, "new"}, true},
		"twice": {"bert", map[string]*fstest.MapFile{VocabFile: file("a\nb\na\n")}, []string{"line 3 is that of line 1"}, true},
		"no merges": {"roberta", map[string]*fstest.MapFile{PairsFile: pairs[PairsFile]},
			[]string{TokenizerFile, "AutoTokenizer"}, true},
		"no ids":     {"roberta", map[string]*fstest.MapFile{PairsFile: file(`[]`), MergesFile: file("")}, []string{PairsFile}, true},
		"no options": {"bert", map[string]*fstest.MapFile{VocabFile: file(vocab), TokenizerConfigFile: file("{")}, []string{TokenizerConfigFile}, true},
		"nothing":    {"bert", nil, []string{TokenizerFile, "AutoTokenizer"}, true},
		"of a t5":    {"t5", map[string]*fstest.MapFile{VocabFile: file(vocab)}, []string{TokenizerFile}, true},
	} {
		folder, _ := huggingFolder(t, huggingConfig(c.kind), nil)
		delete(folder, TokenizerFile)
		for n, f := range c.files {
			folder[n] = f
		}
		b, err := LoadBase(folder)
		said := ""
		switch {
		case c.bad && err != nil:
			said = err.Error()
		case !c.bad && err == nil:
			said = string(b.Tokenizer)
		default:
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in %s", name, want, said)
			}
		}
	}
}

// What a preprocessor does to a picture that is not done here would give other numbers
// than the model was trained with: it is refused, and named.
func TestPreprocessorsThatAreNotFollowed(t *testing.T) {
	config := huggingConfig("vit") // 4 pixels a side
	for text, want := range map[string]string{
		`{"resample": 2, "do_rescale": true, "rescale_factor": 0.00392156862745098, "size": {"height": 4, "width": 4}}`: "",
		`{"size": 4, "do_center_crop": false}`: "",
		`{}`:                                   "",
		`{"resample": 3}`:                      "resample",
		`{"do_center_crop": true}`:             "do_center_crop",
		`{"do_rescale": false}`:                "do_rescale",
		`{"rescale_factor": 1}`:                "rescale_factor",
		`{"size": 8}`:                          "size",
		`{"size": {"shortest_edge": 4}}`:       "size",
		`{"size": {"height": 4, "width": 8}}`:  "size",
	} {
		folder, _ := huggingFolder(t, config, nil)
		folder[preprocessorFile] = &fstest.MapFile{Data: []byte(text)}
		_, err := LoadBase(folder)
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFolderLabels(t *testing.T) {
	for text, want := range map[string][]string{
		`{"0": "neg", "1": "x, y", "2": "日本"}`: {"neg", "x, y", "日本"},
		`{"0": "a", "2": "b"}`:                 nil,
		`{"0": "a", "1": "a"}`:                 nil,
		`{"0": "a", "1": ""}`:                  nil,
		`{}`:                                   nil,
	} {
		config, err := json.Marshal(map[string]any{"id2label": json.RawMessage(text)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := FolderLabels(fstest.MapFS{ConfigFile: {Data: config}})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	if _, err := FolderLabels(fstest.MapFS{ConfigFile: {Data: []byte(`{"id2label": []}`)}}); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if _, err := FolderLabels(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
