package tokenizer

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// Where a mask takes the spaces beside it, as RoBERTa's takes those to its left, follows
// from the file; what stands for it is put back so that a word keeps its space.
func TestMask(t *testing.T) {
	w, err := FromVocab([]string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "taxi", "##ing"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := FindMask(file, w)
	if !ok || m.ID != 4 || m.Left || m.Right {
		t.Errorf("%+v", m)
	}
	if parts := m.Cut("a [MASK] b[MASK]"); !slices.Equal(parts, []string{"a ", " b", ""}) {
		t.Errorf("%q", parts)
	}
	if got := m.Fill([]string{"a ", " b"}, []string{Text(w, 6)}); got != "aing b" {
		t.Errorf("%q", got)
	}
	if got := Text(w, 0); got != "[PAD]" {
		t.Errorf("%q", got)
	}
	if _, ok := FindMask(bytePairJSON(), bytePairOf(t)); ok {
		t.Error("a mask where there is none")
	}
	file = bytes.Replace(bytePairJSON(), []byte(`"added_tokens":[`),
		[]byte(`"added_tokens":[{"id":260,"content":"<mask>","lstrip":true,"special":true},`), 1)
	bpe, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	left, ok := FindMask(file, bpe)
	if want := (MaskToken{ID: 260, Spelling: "<mask>", Left: true}); !ok || left != want {
		t.Errorf("%+v, want %+v", left, want)
	}
	parts := left.Cut("it is \t<mask> here")
	if !slices.Equal(parts, []string{"it is", " here"}) {
		t.Errorf("%q", parts)
	}
	if got := left.Fill(parts, []string{" well"}); got != "it is well here" {
		t.Errorf("%q", got)
	}
	both := MaskToken{ID: 4, Spelling: "<mask>", Left: true, Right: true}
	if parts := both.Cut("a <mask> b <mask>"); !slices.Equal(parts, []string{"a", "b", ""}) {
		t.Errorf("%q", parts)
	}
}
