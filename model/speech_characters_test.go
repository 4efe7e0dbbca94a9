package model

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/data/tokenizer"
)

// ctcData is what lab/bench/interop/ctc.py wrote.
var ctcData = filepath.Join("nn", "testdata", "ctc")

// Texts are read and written as Wav2Vec2CTCTokenizer does.
func TestCharactersAreTransformers(t *testing.T) {
	var golden map[string]struct {
		Encoded        map[string][]int32
		Frames         [][]int32
		Decoded, Spelt []string
	}
	data, err := os.ReadFile(filepath.Join(ctcData, "texts.json"))
	if err == nil {
		err = json.Unmarshal(data, &golden)
	}
	if err != nil || len(golden) != 3 {
		t.Fatal(len(golden), err)
	}
	for name, g := range golden {
		c := NewHubert(8, 16, 1)
		text, err := c.readCharacters(os.DirFS(filepath.Join(ctcData, "tokenizers", name)))
		if err != nil {
			t.Fatal(name, err)
		}
		chars, err := tokenizer.ParseCharacters(text)
		if err != nil {
			t.Fatal(name, err)
		}
		if chars.Size() != c.VocabSize || int(chars.Blank()) != c.PadTokenID {
			t.Errorf("%s: %d characters with the blank at %d, want %d and %d", name, chars.Size(), chars.Blank(), c.VocabSize, c.PadTokenID)
		}
		for text, want := range g.Encoded {
			if got, err := chars.Encode(text); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q is %v, want %v: %v", name, text, got, want, err)
			}
		}
		for i, frames := range g.Frames {
			if got := chars.Text(slices.Compact(slices.Clone(frames))); got != g.Decoded[i] {
				t.Errorf("%s: frames %v are %q, want %q", name, frames, got, g.Decoded[i])
			}
			if got := chars.Text(frames); got != g.Spelt[i] {
				t.Errorf("%s: %v spells %q, want %q", name, frames, got, g.Spelt[i])
			}
		}
	}
}

// A base that transcribes comes back with its characters, and so does a release of it.
func TestCharactersComeBack(t *testing.T) {
	for _, name := range []string{"hubert", "wav2vec2-odd"} { // of which one has outputs that no character has
		b, err := LoadBaseDir(filepath.Join(ctcData, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Tokenizer) == 0 || b.Config.VocabSize < 9 {
			t.Fatalf("%s: %d characters", name, b.Config.VocabSize)
		}
		same := func(how string, again *Base, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(name, how, err)
			}
			one, err1 := b.SHA256()
			two, err2 := again.SHA256()
			if err := errors.Join(err1, err2); err != nil || one != two || again.Config != b.Config || string(again.Tokenizer) != string(b.Tokenizer) {
				t.Errorf("%s, %s: another base: %+v, %v", name, how, again.Config, err)
			}
		}
		out := t.TempDir()
		if err := b.WriteDir(out); err != nil {
			t.Fatal(err)
		}
		again, err := LoadBaseDir(out)
		same("as a folder", again, err)
		blob, err := b.Blob()
		if err != nil {
			t.Fatal(err)
		}
		again, err = ParseBlob(blob)
		same("in one piece", again, err)
		files, err := b.Files()
		if err != nil {
			t.Fatal(err)
		}
		own := fstest.MapFS{}
		for name, data := range files {
			own[name] = &fstest.MapFile{Data: data}
		}
		again, err = LoadBase(own)
		same("as Starling keeps it", again, err)

		head, err := LoadHead(os.DirFS(filepath.Join(ctcData, name)), b.Config, TaskTranscribe)
		if err != nil {
			t.Fatal(err)
		}
		a, err := HeadAdapter(b.Config, TaskTranscribe, 0, head)
		if err != nil {
			t.Fatal(err)
		}
		values, err := a.Layout().Merge(b, a.Slice(1), 1)
		if err != nil {
			t.Fatal(err)
		}
		out = t.TempDir()
		if err := (Release{Base: b, Task: TaskTranscribe, Values: values}).Write(out); err != nil {
			t.Fatal(err)
		}
		again, err = LoadBaseDir(out)
		same("merged", again, err)
		released, err := LoadHead(os.DirFS(out), b.Config, TaskTranscribe)
		if err != nil || !slices.Equal(released["lm_head.weight"].Data, head["lm_head.weight"].Data) || len(head["lm_head.weight"].Data) == 0 {
			t.Errorf("%s: another head: %v", name, err)
		}
		var config struct {
			Classes []string `json:"architectures"`
			Vocab   int      `json:"vocab_size"`
		}
		data, err := os.ReadFile(filepath.Join(out, ConfigFile))
		if err == nil {
			err = json.Unmarshal(data, &config)
		}
		if err != nil || len(config.Classes) != 1 || !strings.HasSuffix(config.Classes[0], "ForCTC") || config.Vocab != b.Config.VocabSize {
			t.Errorf("%s: %+v, %v", name, config, err)
		}
	}
}

func TestCharactersAreRefused(t *testing.T) {
	folder := func(change func(files fstest.MapFS)) fs.FS {
		files := fstest.MapFS{}
		for _, name := range []string{ConfigFile, WeightsFile, PairsFile, TokenizerConfigFile, preprocessorFile} {
			data, err := os.ReadFile(filepath.Join(ctcData, "hubert", name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = &fstest.MapFile{Data: data}
		}
		change(files)
		return files
	}
	set := func(name, text string) func(fstest.MapFS) {
		return func(files fstest.MapFS) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	}
	swap := func(old, now string) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			files[ConfigFile].Data = []byte(strings.Replace(string(files[ConfigFile].Data), old, now, 1))
		}
	}
	for want, change := range map[string]func(fstest.MapFS){
		`no "<pad>"`:                set(PairsFile, `{"a": 0, "b": 1}`),
		"vocab_size is 9":           set(PairsFile, `{"<pad>": 0, "b": 9}`),
		"pad_token_id is 0":         set(PairsFile, `{"<pad>": 1, "b": 2}`),
		`"a": json`:                 set(PairsFile, `{"<pad>": 0, "a": 1.5}`),
		"pad_token: want a text":    set(TokenizerConfigFile, `{"pad_token": 7}`),
		"want true or false: json":  set(TokenizerConfigFile, `{"do_lower_case": "yes"}`),
		"ctc_loss_reduction is":     swap(`"ctc_loss_reduction": "sum"`, `"ctc_loss_reduction": "none"`),
		`added_tokens.json has "T"`: set(AddedTokensFile, `{"T": 11}`),
	} {
		if _, err := LoadBase(folder(change)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// One that writes nothing down is read all the same, and is not for the task.
	for name, change := range map[string]func(fstest.MapFS){
		"no vocabulary": func(files fstest.MapFS) { delete(files, PairsFile) },
		"of languages":  set(PairsFile, `{"eng": {"<pad>": 0}, "deu": {"<pad>": 0}}`),
	} {
		b, err := LoadBase(folder(change))
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := NewLayout(b.Config, Method{RMax: 1, Alpha: 1, Task: TaskTranscribe}, 0); err == nil || !strings.Contains(err.Error(), PairsFile) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := NewLayout(b.Config, Method{RMax: 1, Alpha: 1, Task: TaskListen}, 2); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Tokens may be objects, as transformers writes them, and stand in a file of their own.
	c := NewHubert(8, 16, 1)
	text, err := c.readCharacters(fstest.MapFS{PairsFile: {Data: []byte(`{"a": 0}`)}, AddedTokensFile: {Data: []byte(`{"[P]": 3}`)},
		TokenizerConfigFile: {Data: []byte(`{"pad_token": {"content": "[P]"}, "unk_token": null}`)}, ConfigFile: {Data: []byte("{}")}})
	if err != nil || c.VocabSize != 4 || c.PadTokenID != 3 || !strings.Contains(string(text), `"unk_token":"\u003cunk\u003e"`) {
		t.Errorf("%s, %+v, %v", text, c, err)
	}
}

func TestWithCharacters(t *testing.T) {
	c := NewHubert(8, 16, 1)
	text, err := c.WithCharacters([]string{"zwei drei", "ei|n"})
	if err != nil || c.VocabSize != 3+7 || c.PadTokenID != 0 || c.Validate() != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	chars, err := tokenizer.ParseCharacters(text)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := chars.Encode("ei zwei"); err != nil || chars.Text(ids) != "ei zwei" {
		t.Errorf("%v, %v", ids, err)
	}
	many := make([]rune, 1<<14)
	for i := range many {
		many[i] = rune(0x4e00 + i)
	}
	if _, err := c.WithCharacters([]string{string(many)}); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

// Whatever a folder's files say, a configuration with characters is one that holds, or refused.
func FuzzCharacterFolder(f *testing.F) {
	f.Add([]byte(`{"<pad>":0,"a":1}`), []byte(`{"do_lower_case":true,"pad_token":{"content":"<pad>"}}`), []byte(`{"b":2}`), []byte(`{"vocab_size":4,"architectures":["HubertForCTC"]}`))
	f.Add([]byte(`{"eng":{"a":1}}`), []byte(`{"pad_token":null}`), []byte(`null`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, vocab, keys, added, config []byte) {
		c := NewHubert(8, 16, 1)
		text, err := c.readCharacters(fstest.MapFS{PairsFile: {Data: vocab}, TokenizerConfigFile: {Data: keys}, AddedTokensFile: {Data: added}, ConfigFile: {Data: config}})
		if err != nil || text == nil {
			return
		}
		if err := c.Validate(); err != nil || c.PadTokenID >= c.VocabSize {
			t.Fatalf("%+v: %v", c, err)
		}
		if chars, err := tokenizer.ParseCharacters(text); err == nil && (chars.Size() > c.VocabSize || int(chars.Blank()) != c.PadTokenID) {
			t.Fatalf("%d characters with the blank at %d of %+v", chars.Size(), chars.Blank(), c)
		}
	})
}
