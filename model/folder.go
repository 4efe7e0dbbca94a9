package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Further files of a folder in Hugging Face layout.
const (
	IndexFile   = "model.safetensors.index.json" // of sharded weights
	poolingFile = "1_Pooling/config.json"        // sentence-transformers'
	maxShards   = 1024
)

// LoadBase reads a folder in Hugging Face layout: config.json, tokenizer.json and
// model.safetensors, whole or in shards. Weights may be f32, f16, bf16 or
// bitsandbytes' nf4, and lie under their encoder's names or under those of a model
// with a head, which is left out (LoadHead reads it). What the base keeps is under
// canonical names, so that the same weights give the same Blob however a folder
// holds them. 1_Pooling/config.json decides the pooling where config.json has none. A
// folder without tokenizer.json may hold the files that it is made of: vocab.txt of a
// WordPiece, vocab.json and merges.txt of a byte-level BPE, spiece.model of a T5.
func LoadBase(fsys fs.FS) (*Base, error) {
	cfg, err := ReadFile(fsys, ConfigFile, maxJSON)
	if err != nil {
		return nil, err
	}
	c, err := ParseConfig(cfg)
	if err != nil {
		return nil, err
	}
	var ours struct {
		Pooling string   `json:"pooling"`
		NF4     []string `json:"starling_nf4"`
		Kind    string   `json:"model_type"`
	}
	if err := json.Unmarshal(cfg, &ours); err != nil {
		return nil, fmt.Errorf("%w: config.json: %w", ErrConfig, err)
	}
	if ours.Pooling == "" && ours.Kind != ownModelType && c.arch().pools() {
		if c.Pooling, err = folderPooling(fsys); err != nil {
			return nil, err
		}
	}
	if read := c.folder().reads; read != nil {
		if err := read(&c, fsys); err != nil {
			return nil, err
		}
	}
	if c.Causal() && ours.Kind != ownModelType {
		if c.Decoder.Chat, err = readChat(fsys); err != nil {
			return nil, err
		}
	}
	tok, err := readTokenizer(fsys)
	if c.Textless() && errors.Is(err, fs.ErrNotExist) {
		err = nil // it reads no text
	}
	if read := c.folder().characters; read != nil && ours.Kind != ownModelType {
		tok, err = read(&c, fsys)
	}
	if errors.Is(err, fs.ErrNotExist) {
		var old error
		if tok, old = c.oldTokenizer(fsys); old == nil || !errors.Is(old, fs.ErrNotExist) {
			err = old
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: transformers writes one with AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)", err)
	}
	if err != nil {
		return nil, err
	}
	if c.Causal() && ours.Kind != ownModelType {
		if err := c.Decoder.settleEnds(fsys, tok, c.VocabSize); err != nil {
			return nil, err
		}
	}
	files, err := readWeights(fsys)
	if err != nil {
		return nil, err
	}
	if c.Pooling == PoolHF && ours.Pooling == "" && !c.hasPooler(files) {
		c.Pooling = PoolNone // for the tasks that read every token
	}
	if c.arch().tied != nil {
		if err := c.settleHead(files); err != nil {
			return nil, err
		}
	}
	st, err := canonical(c, files, ours.Kind == ownModelType)
	if err != nil {
		return nil, err
	}
	b, err := openBase(c, st, tok)
	if err != nil || len(ours.NF4) == 0 || len(b.packed()) > 0 {
		return b, err
	}
	return repack(b, ours.NF4)
}

// readTokenizer reads tokenizer.json. A large one goes without the white space between its
// tokens, which is half of what transformers writes of a large vocabulary; a smaller one stays
// as it is, and its base keeps its hash.
func readTokenizer(fsys fs.FS) ([]byte, error) {
	data, err := ReadFile(fsys, TokenizerFile, maxTokenizerFile)
	if err != nil || len(data) <= maxJSON {
		return data, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, TokenizerFile, err)
	}
	return compact.Bytes(), nil
}

// hasPooler reports whether the files hold anything of the frozen maps of the head, where
// there are some.
func (c Config) hasPooler(files []*SafeTensors) bool {
	for _, d := range c.Head() {
		weight, _ := find(c, files, d.Name+".weight")
		bias, _ := find(c, files, d.Name+".bias")
		if !d.Trained && weight == nil && bias == nil {
			return false
		}
	}
	return true
}

// LoadBaseDir is LoadBase on a directory.
func LoadBaseDir(dir string) (*Base, error) {
	b, err := LoadBase(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("base %s: %w", dir, err)
	}
	return b, nil
}

// folderPooling reads sentence-transformers' file; a folder without one means its
// family's own classifier.
func folderPooling(fsys fs.FS) (Pooling, error) {
	data, err := ReadFile(fsys, poolingFile, maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return PoolHF, nil
	}
	if err != nil {
		return "", err
	}
	modes := map[string]any{}
	if err := json.Unmarshal(data, &modes); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrConfig, poolingFile, err)
	}
	var on []string
	for key, v := range modes {
		if set, _ := v.(bool); set && strings.HasPrefix(key, "pooling_mode_") {
			on = append(on, key)
		}
	}
	if mode, ok := modes["pooling_mode"].(string); ok { // later versions name it
		on = []string{"pooling_mode_" + mode + "_tokens"}
	}
	if len(on) == 1 {
		switch on[0] {
		case "pooling_mode_mean_tokens":
			return PoolMean, nil
		case "pooling_mode_cls_token", "pooling_mode_cls_tokens":
			return PoolFirst, nil
		}
	}
	return "", fmt.Errorf("%w: %s asks for %q: only the mean over tokens or the first token alone is supported", ErrConfig, poolingFile, on)
}

// readWeights reads a folder's safetensors files.
func readWeights(fsys fs.FS) ([]*SafeTensors, error) {
	names := []string{WeightsFile}
	index, err := ReadFile(fsys, IndexFile, maxJSON)
	if err == nil {
		if names, err = ShardNames(index); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []*SafeTensors
	left := int64(maxBase)
	for _, name := range names {
		st, size, err := openWeights(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			if _, old := fs.Stat(fsys, "pytorch_model.bin"); old == nil {
				return nil, fmt.Errorf("%w: pytorch_model.bin is not read, as it can hold code: "+
					"transformers writes %s with AutoModel.from_pretrained(FOLDER).save_pretrained(FOLDER)", err, WeightsFile)
			}
		}
		if err != nil {
			return nil, err
		}
		if left -= size; left < 0 {
			return nil, fmt.Errorf("model: the weights are larger than %d bytes", int64(maxBase))
		}
		files = append(files, st)
	}
	return files, nil
}

// openWeights opens a safetensors file, which stays open for as long as one of its
// tensors is held, and returns its size. A file system without random access is read
// whole.
func openWeights(fsys fs.FS, name string) (*SafeTensors, int64, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	var st *SafeTensors
	size := int64(0)
	if info, statErr := f.Stat(); statErr == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	file, random := f.(io.ReaderAt)
	inPlace := random && size > 0
	if inPlace {
		st, err = ReadSafeTensors(file, size)
	} else {
		var data []byte
		if data, err = readAll(f, name, maxBase); err == nil {
			size = int64(len(data))
			st, err = ParseSafeTensors(data)
		}
	}
	if err != nil || !inPlace { // os.File closes itself with the last tensor
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	return st, size, nil
}

// ShardNames lists the files of an index, each once, in the order of their names.
func ShardNames(index []byte) ([]string, error) {
	var doc struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(index, &doc); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, IndexFile, err)
	}
	names := map[string]bool{}
	for tensor, name := range doc.Map {
		if path.Base(name) != name || name == "." || !strings.HasSuffix(name, ".safetensors") {
			return nil, fmt.Errorf("%w: %s: tensor %.80q is in %.80q, want a safetensors file in the same folder",
				ErrConfig, IndexFile, tensor, name)
		}
		names[name] = true
	}
	if len(names) == 0 || len(names) > maxShards {
		return nil, fmt.Errorf("%w: %s names %d files, want 1..%d", ErrConfig, IndexFile, len(names), maxShards)
	}
	return sortedKeys(names), nil
}

// canonical picks the encoder's tensors out of the files.
func canonical(c Config, files []*SafeTensors, own bool) (*SafeTensors, error) {
	out := &SafeTensors{Metadata: map[string]string{"format": "pt"}}
	// A base without token types is written with one of zeros for transformers.
	if st, name := find(c, files, typesName); st != nil && c.TypeVocabSize == 0 && !own {
		raw, _ := st.Lookup(name)
		return nil, &ShapeError{typesName, raw.Shape, []int{0, c.HiddenSize}}
	}
	if err := checkDepth(c, files); err != nil {
		return nil, err
	}
	for _, spec := range c.BaseTensors() {
		st, name := find(c, files, spec.Name)
		if st == nil {
			return nil, &ShapeError{Tensor: spec.Name, Want: spec.Shape}
		}
		raw, _ := st.Lookup(name)
		g, err := st.nf4Group(name)
		if err != nil {
			return nil, err
		}
		if turned := c.arch().turned; turned != nil && turned(spec.Name) && !own {
			if err := addTurned(out, st, name, spec); err != nil {
				return nil, err
			}
			continue
		}
		switch {
		case g != nil && !g.standard():
			t, err := st.Tensor(name)
			if err == nil {
				err = out.Add(spec.Name, "F32", t.Shape, t.Data)
			}
			if err != nil {
				return nil, err
			}
		case g != nil:
			for _, suffix := range nf4Parts {
				if part, ok := st.Lookup(name + suffix); ok {
					part.Name = spec.Name + suffix
					out.Tensors = append(out.Tensors, part)
				}
			}
		case raw.DType == "F64":
			v, err := raw.Float32()
			if err == nil {
				err = out.Add(spec.Name, "F32", raw.Shape, v)
			}
			if err != nil {
				return nil, err
			}
		default:
			raw.Name = spec.Name
			out.Tensors = append(out.Tensors, raw)
		}
	}
	return out, nil
}

// addTurned adds a map that a folder holds as [in, out].
func addTurned(to, from *SafeTensors, name string, spec TensorSpec) error {
	t, err := from.Tensor(name)
	if err != nil {
		return err
	}
	if want := []int{spec.Shape[1], spec.Shape[0]}; !slices.Equal(t.Shape, want) {
		return &ShapeError{spec.Name, t.Shape, want}
	}
	return to.Add(spec.Name, "F32", spec.Shape, turn(t.Data, spec.Shape[1], spec.Shape[0]))
}

// olderNames are the ends of tensors' names as they are, and as earlier programs wrote them.
var olderNames = map[string]string{
	"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta", // TensorFlow
	".parametrizations.weight.original0": ".weight_g", ".parametrizations.weight.original1": ".weight_v", // PyTorch before 2.0
}

// find looks a tensor up under the names that checkpoints use: the encoder's own,
// that of a model with a head, Starling's own model, and TensorFlow's for LayerNorm.
func find(c Config, files []*SafeTensors, name string) (*SafeTensors, string) {
	var names []string
	for _, prefix := range append([]string{""}, c.Prefixes()...) {
		names = append(names, prefix+name)
		for now, then := range olderNames {
			if stem, ok := strings.CutSuffix(name, now); ok {
				names = append(names, prefix+stem+then)
			}
		}
	}
	if c.Generates() { // VT5's classes hold a T5 beside its embeddings, whose maps are lists of one
		names = append(names, "language_backbone."+name, strings.Replace(name, "_emb_matcher.", "_emb_matcher.layers.0.", 1))
	}
	if name == T5Shared { // tied weights are stored once, under any of their names
		names = append(names, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
			"language_backbone.encoder.embed_tokens.weight", "language_backbone.decoder.embed_tokens.weight")
	}
	for _, n := range names {
		for _, st := range files {
			if hasTensor(st, n) {
				return st, n
			}
		}
	}
	return nil, ""
}

// ReadFile reads a file of at most limit bytes.
func ReadFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, name, limit)
}

// readAll is ReadFile of an open file.
func readAll(f fs.File, name string, limit int64) ([]byte, error) {
	// A file says how long it is: growing a buffer to gigabytes doubles them.
	size := int64(512)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		size = min(info.Size(), limit) + 1
	}
	buf := make([]byte, 0, size)
	r := io.LimitReader(f, limit+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("model: read %s: %w", name, err)
		}
	}
	if int64(len(buf)) > limit {
		return nil, fmt.Errorf("model: %s is larger than %d bytes", name, limit)
	}
	return buf, nil
}
