package model

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/durable"
)

// What Starling writes where no class of transformers computes a model: a
// model_type of its own, so that none takes it for what it is not, and the module
// that loads it with trust_remote_code.
const (
	ownModelType = "starling"
	ownConfigKey = "starling_config" // this package's Config
	ownPrefix    = "starling."       // of the encoder in that module
	modelingFile = "modeling_starling.py"
	ownClass     = "StarlingForSequenceClassification"
	ownT5Class   = "StarlingForConditionalGeneration"
)

//go:embed modeling_starling.py
var modelingSource []byte

//go:embed modeling_starling_t5.py
var modelingT5Source []byte

// Release is a model as other programs read it: a folder in Hugging Face layout
// with plain float weights, which transformers loads and which gives the same
// logits. Where the head is none of transformers' own, config.json says so with a
// model_type of its own and the folder holds the module that loads it.
type Release struct {
	Base   *Base
	Labels []string             // classes; nil where there is no head
	Task   TaskKind             // what the head answers
	Values map[string][]float32 // of Layout.Merge: they replace the base's, and add a head; nil: the base alone
}

// standard reports whether transformers has a class that computes the model.
func (c Config) standard() bool {
	if f := c.arch().standard; f != nil {
		return f(c)
	}
	return c.Pooling == PoolHF || c.Pooling == PoolNone
}

// checkpointPrefix is that of the encoder in a model with a head.
func (c Config) checkpointPrefix() string {
	if c.standard() {
		return c.arch().prefix
	}
	return ownPrefix
}

// boxes reports whether the model reads where words stand: a LayoutLM then.
func (r Release) boxes() bool { return r.Values[boxWeight] != nil }

// Files returns the folder's files by name.
func (r Release) Files() (map[string][]byte, error) {
	files, weights, err := r.parts()
	if err != nil {
		return nil, err
	}
	if files[WeightsFile], err = weights.Encode(); err != nil {
		return nil, err
	}
	return files, nil
}

// Write writes the folder, creating it where needed, and holds no more than one of its
// tensors at a time.
func (r Release) Write(dir string) error {
	files, weights, err := r.parts()
	if err != nil {
		return err
	}
	blob, err := weights.open()
	if err != nil {
		return err
	}
	if err := WriteFiles(dir, files); err != nil {
		return err
	}
	return durable.ReplaceFrom(filepath.Join(dir, WeightsFile), blob, 0o644)
}

// parts are the folder's files but for the weights, and these.
func (r Release) parts() (map[string][]byte, *SafeTensors, error) {
	weights, err := r.weights()
	if err != nil {
		return nil, nil, err
	}
	files, err := r.beside()
	return files, weights, err
}

// beside are the files beside the weights.
func (r Release) beside() (map[string][]byte, error) {
	config, err := marshalFile(r.config())
	if err != nil {
		return nil, err
	}
	c := r.Base.Config.For(r.Task)
	var read []byte // what its preprocessor does
	if f := c.folder().prepares; f != nil {
		if read, err = marshalFile(f(c)); err != nil {
			return nil, err
		}
	}
	if c.Textless() {
		files := map[string][]byte{}
		if len(r.Base.Tokenizer) > 0 && c.folder().characters != nil {
			if files, err = characterFiles(r.Base.Tokenizer); err != nil {
				return nil, err
			}
		}
		files[ConfigFile], files[preprocessorFile] = config, read
		return files, nil
	}
	reads := tokenizerConfig(c, r.Base.Tokenizer)
	if r.Task.of().asks && c.TypeVocabSize > 1 { // a pair of texts
		reads["model_input_names"] = []string{"input_ids", "token_type_ids", "attention_mask"}
	}
	tok, err := marshalFile(reads)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		ConfigFile: config, TokenizerFile: r.Base.Tokenizer, TokenizerConfigFile: tok,
	}
	if read != nil {
		files[preprocessorFile] = read
	}
	if s, ok := parseSentencePiece(r.Base.Tokenizer); ok {
		files[SentencePieceFile] = s.Model.File
		delete(files, TokenizerFile)
	}
	if !c.standard() {
		files[modelingFile] = modelingSource
		if c.Generates() {
			files[modelingFile] = modelingT5Source
		}
	}
	return files, nil
}

func marshalFile(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

// weights are the tensors: as they are stored where those are plain floats, else as
// what their codes stand for.
func (r Release) weights() (*SafeTensors, error) {
	for name := range r.Values {
		if strings.Contains(name, AdapterDown+".") || strings.Contains(name, AdapterUp+".") || name == KroneckerA {
			return nil, fmt.Errorf("%w: the adapter's bottlenecks are modules that no class of transformers has: export it as safetensors", ErrConfig)
		}
	}
	b, c := r.Base, r.Base.Config.For(r.Task)
	st := &SafeTensors{Metadata: map[string]string{"format": "pt"}}
	prefix := ""
	if r.Values != nil || !c.standard() || c.Causal() {
		prefix = c.checkpointPrefix()
	}
	if r.boxes() {
		prefix = layoutLM + "."
		for _, t := range layoutLMTables(r.Values[boxWeight], c.HiddenSize) {
			if err := st.Add(prefix+t.Name, "F32", t.Shape, t.Data); err != nil {
				return nil, err
			}
		}
	}
	used := map[string]bool{boxWeight: true}
	for _, spec := range c.BaseTensors() {
		name := prefix + spec.Name
		if !c.standard() && isHead(c, spec.Name) || c.Causal() && spec.Name == DecoderHead {
			name = spec.Name
		}
		if turned := c.arch().turned; turned != nil && turned(spec.Name) {
			v, ok := r.Values[spec.Name]
			if used[spec.Name] = true; !ok {
				var err error
				if v, err = b.Tensor(spec.Name); err != nil {
					return nil, err
				}
			}
			shape := []int{spec.Shape[1], spec.Shape[0]}
			if err := st.Add(name, "F32", shape, turn(v, spec.Shape[0], spec.Shape[1])); err != nil {
				return nil, err
			}
			continue
		}
		if v, ok := r.Values[spec.Name]; ok {
			used[spec.Name] = true
			if err := st.Add(name, "F32", spec.Shape, v); err != nil {
				return nil, err
			}
			continue
		}
		raw, _ := b.stored.Lookup(spec.Name)
		if g, err := b.stored.nf4Group(spec.Name); err != nil {
			return nil, err
		} else if g != nil {
			raw = g.floats()
		}
		raw.Name = name
		st.Tensors = append(st.Tensors, raw)
	}
	if c.arch().types && c.TypeVocabSize == 0 { // transformers' class has some
		if err := st.Add(prefix+typesName, "F32", []int{1, c.HiddenSize}, make([]float32, c.HiddenSize)); err != nil {
			return nil, err
		}
	}
	columns, in := map[string]int{}, c.HiddenSize // of the head's maps, by their weights' names
	for _, d := range c.HeadFor(r.Task) {
		columns[d.Name+".weight"] = in
		in = cmp.Or(d.Out, c.HiddenSize)
	}
	for _, name := range sortedKeys(r.Values) {
		if used[name] {
			continue
		}
		v := r.Values[name]
		shape := []int{len(v)}
		if name[len(name)-len("weight"):] == "weight" && !(r.Task.Reads() == ReadsMasked && strings.HasPrefix(name, c.MaskedHead().Norm)) {
			n := cmp.Or(columns[name], c.HiddenSize)
			shape = []int{len(v) / n, n}
		}
		if err := st.Add(name, "F32", shape, v); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// isHead reports whether a tensor is of a frozen map of the head, or of a T5's own
// embeddings: in Starling's own model these stand beside what transformers has.
func isHead(c Config, name string) bool {
	if strings.HasPrefix(name, "spatial_embedding.") || strings.HasPrefix(name, "visual_embedding.") {
		return true
	}
	for _, d := range c.Head() {
		if name == d.Name+".weight" || name == d.Name+".bias" {
			return true
		}
	}
	return false
}

// config is config.json.
func (r Release) config() map[string]any {
	c := r.Base.Config.For(r.Task)
	out := c.huggingFace()
	class := c.arch().class
	if r.boxes() {
		class = layoutLMClass
		out["model_type"], out["max_2d_position_embeddings"] = layoutLM, layoutLMTable
	}
	out["architectures"] = []string{class + "Model"}
	switch {
	case c.Generates():
		out["architectures"] = []string{class + answerTask.class}
	case c.Causal():
		out["architectures"] = []string{class + causalTask.class}
	case r.Values != nil:
		out["architectures"] = []string{class + r.Task.of().class}
		maps.Copy(out, r.Task.of().config)
	}
	if c.Generates() && !c.standard() {
		inner := out
		delete(inner, "architectures")
		out = map[string]any{
			"model_type": ownModelType, "architectures": []string{ownT5Class}, "t5": inner, ownConfigKey: c,
			"is_encoder_decoder": true, "vocab_size": c.VocabSize, "pad_token_id": c.PadTokenID, "eos_token_id": c.T5.End,
			"decoder_start_token_id": c.T5.Start, "hidden_size": c.HiddenSize, "tie_word_embeddings": !c.T5.OwnHead,
			"auto_map": map[string]string{
				"AutoConfig":            "modeling_starling.StarlingConfig",
				"AutoModelForSeq2SeqLM": "modeling_starling." + ownT5Class,
			},
		}
	} else if !c.standard() {
		encoder := out
		delete(encoder, "architectures")
		out = map[string]any{
			"model_type": ownModelType, "architectures": []string{ownClass}, "encoder": encoder, "pooling": c.Pooling,
			ownConfigKey: c, "hidden_size": c.HiddenSize, "vocab_size": c.VocabSize, "pad_token_id": c.PadTokenID,
			"auto_map": map[string]string{
				"AutoConfig":                         "modeling_starling.StarlingConfig",
				"AutoModel":                          "modeling_starling." + ownClass,
				"AutoModelForSequenceClassification": "modeling_starling." + ownClass,
			},
		}
	}
	if names := r.Base.packed(); r.Values == nil && len(names) > 0 {
		out["starling_nf4"] = names
	}
	if len(r.Labels) > 0 {
		names, ids := map[string]string{}, map[string]int{}
		for i, l := range r.Labels {
			names[strconv.Itoa(i)], ids[l] = l, i
		}
		out["id2label"], out["label2id"] = names, ids
	}
	return out
}

// packed lists the tensors that are stored as 4-bit codes.
func (b *Base) packed() []string {
	var names []string
	for _, spec := range b.Config.BaseTensors() {
		if hasTensor(b.stored, spec.Name+nf4State) {
			names = append(names, spec.Name)
		}
	}
	return names
}

// huggingFace is the configuration under the family's own keys.
func (c Config) huggingFace() map[string]any {
	if f := c.folder().keys; f != nil {
		return f(c)
	}
	arch := c.arch()
	out := map[string]any{
		"model_type": c.ModelType, "vocab_size": c.VocabSize, "hidden_size": c.HiddenSize,
		"num_hidden_layers": c.NumHiddenLayers, "num_attention_heads": c.NumAttentionHeads,
		"intermediate_size": c.IntermediateSize, "max_position_embeddings": c.MaxPositions,
		"hidden_act": c.HiddenAct, "pad_token_id": c.PadTokenID, "layer_norm_eps": c.LayerNormEps,
	}
	if c.Pooling == PoolNone { // others ignore it
		out["pooling"] = PoolNone
	}
	if arch.types {
		out["type_vocab_size"] = max(1, c.TypeVocabSize)
	}
	for key, other := range arch.same {
		out[key] = out[other]
	}
	for theirs, ours := range arch.aliases {
		out[theirs] = out[ours]
		delete(out, ours)
	}
	return out
}

// tokenizerConfig lets AutoTokenizer load tokenizer.json whatever the model_type.
func tokenizerConfig(c Config, tokenizer []byte) map[string]any {
	out := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": c.MaxTokens(),
		"model_input_names": []string{"input_ids", "attention_mask"}}
	var doc struct {
		Added []struct {
			ID      int    `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
	}
	if s, ok := parseSentencePiece(tokenizer); ok {
		s.describe(out)
		return out
	}
	defer c.Decoder.Chat.describe(out)
	if json.Unmarshal(tokenizer, &doc) != nil {
		return out // a tokenizer that is no Hugging Face one has no names to give
	}
	roles := map[string]string{
		"[PAD]": "pad_token", "[UNK]": "unk_token", "[CLS]": "cls_token", "[SEP]": "sep_token", "[MASK]": "mask_token",
		"<pad>": "pad_token", "<unk>": "unk_token", "<s>": "cls_token", "</s>": "sep_token", "<mask>": "mask_token",
	}
	if c.Generates() {
		roles["</s>"] = "eos_token"
	}
	for _, t := range doc.Added {
		if c.Causal() {
			for role, id := range map[string]int{"bos_token": c.Decoder.Begin, "eos_token": c.Decoder.Ends[0], "pad_token": c.PadTokenID} {
				if t.ID == id {
					out[role] = t.Content
				}
			}
			continue
		}
		if role, ok := roles[t.Content]; ok {
			out[role] = t.Content
		}
	}
	return out
}

// Files returns the base's folder by name as Starling keeps it: matrices stay 4-bit
// codes where they are, which no other program reads. WriteDir writes what others
// read.
func (b *Base) Files() (map[string][]byte, error) {
	config, err := marshalFile(map[string]any{"model_type": ownModelType, ownConfigKey: b.Config})
	if err != nil {
		return nil, err
	}
	st := &SafeTensors{Metadata: map[string]string{"format": "pt"}, Tensors: b.stored.Tensors}
	weights, err := st.Encode()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{ConfigFile: config, WeightsFile: weights, TokenizerFile: b.Tokenizer}
	if len(b.Tokenizer) == 0 {
		delete(files, TokenizerFile)
	}
	return files, nil
}

// WriteDir writes the base as a folder that other programs read, creating it where
// needed. LoadBase makes the same base of it, to the bit.
func (b *Base) WriteDir(dir string) error {
	return Release{Base: b}.Write(dir)
}
