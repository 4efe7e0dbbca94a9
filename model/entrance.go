package model

// An Entrance names what makes the input of a base's first layer of its tokens, whatever the
// architecture: the tables that are added up, the norm over them, and the linear maps that read
// it. "" and nil: it has none.
type Entrance struct {
	Words, Positions, Types string // tables [rows, hidden]; of a text of one kind, Types' first row
	Gain, Bias              string // of the norm [hidden]
	GainsFromOne            bool   // the norm multiplies by 1 + gain
	Centred                 bool   // the norm takes the mean away: LayerNorm, not RMSNorm
	Maps                    []string
}

// Entrance is the base's; zero where tokens have no embeddings.
func (c Config) Entrance() Entrance {
	if f := c.arch().entrance; f != nil {
		return f(c)
	}
	l := c.Layer(0)
	e := Entrance{Words: wordsName, Positions: positionsName, Gain: c.EmbeddingNorm() + ".weight", Bias: c.EmbeddingNorm() + ".bias",
		Centred: true, Maps: weightsOf(l.Query, l.Key, l.Value)}
	if c.TypeVocabSize > 0 {
		e.Types = typesName
	}
	return e
}

func t5Entrance(c Config) Entrance {
	b := c.T5Block(false, 0)
	return Entrance{Words: T5Shared, Gain: b.SelfNorm, Maps: weightsOf(b.Self+".q", b.Self+".k", b.Self+".v")}
}

func decoderEntrance(c Config) Entrance {
	l := c.DecoderLayer(0)
	if c.Decoder.Learned {
		return Entrance{Words: gpt2Words, Positions: gpt2Positions, Gain: l.BeforeAttention + ".weight", Bias: l.BeforeAttention + ".bias",
			Centred: true, Maps: weightsOf(l.Query)}
	}
	return Entrance{Words: DecoderWords, Gain: l.BeforeAttention + ".weight", GainsFromOne: c.Decoder.GainsFromOne,
		Maps: weightsOf(l.Query, l.Key, l.Value)}
}

func weightsOf(modules ...string) []string {
	for i := range modules {
		modules[i] += ".weight"
	}
	return modules
}

// Depth is how many layers the base has, and how many attentions: a decoder's layer that reads
// an encoder as well has two.
func (c Config) Depth() (layers, attentions int) {
	if f := c.arch().depth; f != nil {
		return f(c)
	}
	return c.NumHiddenLayers, c.NumHiddenLayers
}

// Frames are tokens that a text of this base may have beside its words': those that end it and
// that fill it up, which no tokenizer puts around one.
func (c Config) Frames() []int32 {
	if !c.Causal() {
		return nil
	}
	return []int32{int32(c.PadTokenID), int32(c.Decoder.Ends[0])}
}
