package model

import (
	"slices"
	"testing"
)

// Every tensor of every architecture has the class that its place in the computation gives
// it: what is read first is never taken for something that tells less.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape []int
		kind  Kind
		want  Class
	}{
		{wordsName, []int{50, 8}, KindDelta, ClassEmbeddings},
		{positionsName, []int{20, 8}, KindDelta, ClassEmbeddings},
		{typesName, []int{2, 8}, KindDelta, ClassEmbeddings},
		{T5Shared, []int{50, 8}, KindDelta, ClassEmbeddings},
		{T5Head, []int{50, 8}, KindDelta, ClassEmbeddings},
		{T5BoxX, []int{10, 8}, KindDelta, ClassEmbeddings},
		{T5PageMatcher + ".weight", []int{8, 30}, KindDelta, ClassEmbeddings},
		{T5BoxMatcher + ".weight", []int{8, 8}, KindDelta, ClassEmbeddings},
		{T5EncoderBias, []int{32, 4}, KindDelta, ClassMatrices},
		{T5EncoderNorm, []int{8}, KindDelta, ClassNorms},
		{ViTClass, []int{1, 1, 8}, KindDelta, ClassEmbeddings},
		{ViTPositions, []int{1, 9, 8}, KindDelta, ClassEmbeddings},
		{ViTPatch + ".weight", []int{8, 3, 4, 4}, KindDelta, ClassEmbeddings},
		{ViTPatch + ".bias", []int{8}, KindDelta, ClassBiases},
		{"embeddings.LayerNorm.weight", []int{8}, KindDelta, ClassNorms},
		{"embeddings.LayerNorm.bias", []int{8}, KindDelta, ClassBiases},
		{"encoder.layer.0.attention.self.query.weight", []int{8, 8}, KindDelta, ClassMatrices},
		{"encoder.layer.0.attention.self.query.bias", []int{8}, KindDelta, ClassBiases},
		{"of.nobody.knows.what", []int{7, 7, 7}, KindDelta, ClassMatrices},
		{"a.bias", []int{50}, KindDelta, ClassEmbeddings}, // one for each token
		{"x" + loraA, []int{2, 8}, KindA, ClassLoRA},
		{"x" + loraB, []int{8, 2}, KindB, ClassLoRA},
		{"classifier.weight", []int{3, 8}, KindHead, ClassHead},
		{"encoder.layer.0.output.dense.adapter.down.weight", []int{2, 8}, KindAdapter, ClassAdapters},
		{boxWeight, []int{8, 4}, KindAdapter, ClassEmbeddings},
	} {
		l := &Layout{Config: Config{VocabSize: 50}}
		e := Entry{Name: c.name, Kind: c.kind, Shape: c.shape}
		if c.kind == KindDelta {
			e.Name += DeltaSuffix
		}
		if got := l.Class(e); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if !slices.Contains(Classes(), l.Class(e)) {
			t.Errorf("%s: a class that is not listed", c.name)
		}
	}
	masked := &Layout{Config: Config{VocabSize: 50}, Method: Method{Task: TaskPretrain}}
	if got := masked.Class(Entry{Name: "cls.predictions.bias", Kind: KindHead, Shape: []int{50}}); got != ClassEmbeddings {
		t.Errorf("a value for each token that was masked: %s", got)
	}
	e := Entry{Name: wordsName + DeltaSuffix, Kind: KindDelta}
	for name, want := range map[string]bool{wordsName: true, "word_embeddings.weight": true, "word_embeddings": true, "embeddings": false, "ings.weight": false} {
		if e.Named(name) != want {
			t.Errorf("%s names the words: %v", name, !want)
		}
	}
}
