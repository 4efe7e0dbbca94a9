package model

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// A folder's template of conversations is read wherever transformers keeps it, is in the blob,
// and comes back from every folder that is written.
func TestChatTemplates(t *testing.T) {
	c := Llama(20, 16, 1, 2, 32)
	c.Decoder.Ends = Ends{1, 1, 1, 1}
	plain, err := RandomBase(c, 1, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Release{Base: plain}.Files()
	if err != nil {
		t.Fatal(err)
	}
	load := func(change map[string]string) (*Base, error) {
		fsys := fstest.MapFS{}
		for name, data := range files {
			fsys[name] = &fstest.MapFile{Data: data}
		}
		for name, text := range change {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		return LoadBase(fsys)
	}
	want := Chat{Template: "{{ bos_token }}x", Begin: "<s>", End: "</s>"}
	for name, change := range map[string]map[string]string{
		"a text":            {TokenizerConfigFile: `{"chat_template": "{{ bos_token }}x", "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}}`},
		"of several":        {TokenizerConfigFile: `{"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "{{ bos_token }}x"}], "bos_token": "<s>", "eos_token": "</s>"}`},
		"a file of its own": {TokenizerConfigFile: `{"chat_template": "old", "bos_token": "<s>", "eos_token": "</s>"}`, ChatTemplateFile: "{{ bos_token }}x"},
	} {
		b, err := load(change)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if b.Config.Decoder.Chat != want {
			t.Errorf("%s: %+v", name, b.Config.Decoder.Chat)
		}
		blob, err := b.Blob()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseBlob(blob)
		if err != nil || again.Config != b.Config {
			t.Errorf("%s: the blob has %+v, %v", name, again.Config.Decoder.Chat, err)
		}
		for kind, folder := range map[string]func() (map[string][]byte, error){"a release": Release{Base: b}.Files, "packed": b.Files} {
			written, err := folder()
			if err != nil {
				t.Fatal(err)
			}
			fsys := fstest.MapFS{}
			for file, data := range written {
				fsys[file] = &fstest.MapFile{Data: data}
			}
			read, err := LoadBase(fsys)
			if err != nil || read.Config != b.Config {
				t.Errorf("%s, %s: %+v, %v", name, kind, read, err)
			}
		}
	}
	if plain.Config.Decoder.Chat != (Chat{}) {
		t.Error("a base without a template has one")
	}
	for name, text := range map[string]string{
		"a number": `{"chat_template": 3}`, "too long": `{"chat_template": "` + strings.Repeat("x", maxTemplate+1) + `"}`,
		"a list of numbers": `{"chat_template": [3]}`, "a token": `{"chat_template": "x", "bos_token": 3}`,
		"a long token": `{"chat_template": "x", "eos_token": "` + strings.Repeat("x", maxMark+1) + `"}`,
	} {
		if _, err := load(map[string]string{TokenizerConfigFile: text}); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The tokenizers of Llama 3, Qwen 3 and Gemma 3 are files of 9 to 33 million bytes, half of them
// white space: a folder with one is read, and the space left out.
func TestLargeTokenizers(t *testing.T) {
	c := Llama(20, 16, 1, 2, 32)
	c.Decoder.Ends = Ends{1, 1, 1, 1}
	plain, err := RandomBase(c, 1, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Release{Base: plain}.Files()
	if err != nil {
		t.Fatal(err)
	}
	load := func(tokenizer string) (*Base, error) {
		fsys := fstest.MapFS{}
		for name, data := range files {
			fsys[name] = &fstest.MapFile{Data: data}
		}
		fsys[TokenizerFile] = &fstest.MapFile{Data: []byte(tokenizer)}
		return LoadBase(fsys)
	}
	b, err := load(`{"a": ` + strings.Repeat(" ", maxJSON) + `"` + strings.Repeat("b", maxJSON) + `"}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(`{"a":""}`) + maxJSON; len(b.Tokenizer) != want {
		t.Errorf("%d bytes, want %d", len(b.Tokenizer), want)
	}
	blob, err := b.Blob()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseBlob(blob); err != nil || string(again.Tokenizer) != string(b.Tokenizer) {
		t.Errorf("the blob has another: %v", err)
	}
	if b, err := load(`{ }`); err != nil || string(b.Tokenizer) != `{ }` {
		t.Errorf("a small one is %q, %v", b.Tokenizer, err)
	}
	for name, bad := range map[string]string{"too large": `{"a":"` + strings.Repeat("b", maxTokenizer) + `"}`, "no JSON": strings.Repeat("{", maxJSON+1)} {
		if _, err := load(bad); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Texts are taught to end as the tokenizer says, and end at whatever the folder's files name.
func TestEndsAreTheTokenizersFirst(t *testing.T) {
	c := Llama(20, 16, 1, 2, 32)
	c.Decoder.Ends = Ends{1, 8, 9, 1}
	plain, err := RandomBase(c, 1, []byte(`{"added_tokens": [{"id": 9, "content": "<|eot|>"}, {"id": 12, "content": "<|im_end|>"}, {"id": 99, "content": "<far>"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Release{Base: plain}.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		tokenizer, writes string
		want              Ends
	}{
		"one of the list":   {`{"eos_token": "<|eot|>"}`, "", Ends{9, 1, 8, 9}},
		"another":           {`{"eos_token": {"content": "<|im_end|>"}}`, "", Ends{12, 1, 8, 9}},
		"unknown":           {`{"eos_token": "<none>"}`, "", Ends{1, 8, 9, 1}},
		"beyond the model":  {`{"eos_token": "<far>"}`, "", Ends{1, 8, 9, 1}},
		"none":              {`{}`, "", Ends{1, 8, 9, 1}},
		"one more to write": {`{}`, `{"eos_token_id": [1, 13]}`, Ends{1, 8, 9, 13}},
		"more than fit":     {`{"eos_token": "<|im_end|>"}`, `{"eos_token_id": 13}`, Ends{12, 1, 8, 9}},
	} {
		fsys := fstest.MapFS{TokenizerConfigFile: {Data: []byte(tc.tokenizer)}}
		for file, data := range files {
			if file != TokenizerConfigFile {
				fsys[file] = &fstest.MapFile{Data: data}
			}
		}
		if tc.writes != "" {
			fsys[GenerationConfigFile] = &fstest.MapFile{Data: []byte(tc.writes)}
		}
		b, err := LoadBase(fsys)
		if err != nil || b.Config.Decoder.Ends != tc.want {
			t.Errorf("%s: %v, want %v; %v", name, b.Config.Decoder.Ends, tc.want, err)
		}
	}
}
