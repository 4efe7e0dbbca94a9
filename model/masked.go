package model

// MaskedHead are the modules by which transformers' BertForMaskedLM, and those of its
// family, say what a masked token was: scores of the word embeddings E of
// LayerNorm(activation(Dense x)) E^T + Bias.
type MaskedHead struct {
	Dense, Norm string // with a weight and a bias each
	Bias        string // [vocabulary]
	Activation  string
}

// MaskedHead returns the modules of the base's architecture.
func (c Config) MaskedHead() MaskedHead {
	h := *c.arch().masked
	if h.Activation == "" {
		h.Activation = c.HiddenAct
	}
	return h
}

// maskedEntries are the head's trained tensors. It starts as near to the word
// embeddings' own prediction as it can, since few checkpoints keep the head that they
// were pretrained with: dense is the identity, the norm does not scale.
func (c Config) maskedEntries() []Entry {
	h, n := c.MaskedHead(), c.HiddenSize
	return []Entry{
		{h.Dense + ".weight", KindHead, []int{n, n}, StartIdentity},
		{h.Dense + ".bias", KindHead, []int{n}, StartZero},
		{h.Norm + ".weight", KindHead, []int{n}, StartOne},
		{h.Norm + ".bias", KindHead, []int{n}, StartZero},
		{h.Bias, KindHead, []int{c.VocabSize}, StartZero},
	}
}
