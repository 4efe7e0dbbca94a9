package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/internal/durable"
)

// LoadBase reads a folder in Hugging Face layout: config.json,
// model.safetensors and tokenizer.json.
func LoadBase(fsys fs.FS) (*Base, error) {
	cfg, err := readFile(fsys, ConfigFile, maxJSON)
	if err != nil {
		return nil, err
	}
	c, err := ParseConfig(cfg)
	if err != nil {
		return nil, err
	}
	weights, err := readFile(fsys, WeightsFile, maxBase)
	if err != nil {
		return nil, err
	}
	st, err := ParseSafeTensors(weights)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", WeightsFile, err)
	}
	tok, err := readFile(fsys, TokenizerFile, maxJSON)
	if err != nil {
		return nil, err
	}
	return newBase(c, st, tok)
}

// LoadBaseDir is LoadBase on a directory.
func LoadBaseDir(dir string) (*Base, error) {
	b, err := LoadBase(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("base %s: %w", dir, err)
	}
	return b, nil
}

func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("model: read %s: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("model: %s is larger than %d bytes", name, limit)
	}
	return data, nil
}

// Files returns the folder's files by name. The safetensors file is the one
// the base was read from or packed into, in canonical order.
func (b *Base) Files() (map[string][]byte, error) {
	cfg, err := json.MarshalIndent(b.hfConfig(), "", "  ")
	if err != nil {
		return nil, err
	}
	st := &SafeTensors{Metadata: map[string]string{"format": "pt"}, Tensors: b.stored.Tensors}
	weights, err := st.Encode()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		ConfigFile: append(cfg, '\n'), WeightsFile: weights, TokenizerFile: b.Tokenizer,
	}, nil
}

// hfConfig adds the keys that Hugging Face loaders look for.
func (b *Base) hfConfig() any {
	type quantization struct {
		Method string `json:"quant_method"`
		Load4  bool   `json:"load_in_4bit"`
		Type   string `json:"bnb_4bit_quant_type"`
	}
	out := struct {
		Architectures []string `json:"architectures"`
		Config
		TypeVocab    int           `json:"type_vocab_size"`
		Quantization *quantization `json:"quantization_config,omitempty"`
	}{Architectures: []string{"BertModel"}, Config: b.Config, TypeVocab: 1}
	if hasTensor(b.stored, "embeddings.word_embeddings.weight"+nf4State) {
		out.Quantization = &quantization{"bitsandbytes", true, "nf4"}
	}
	return out
}

// WriteDir writes the folder, creating it where needed.
func (b *Base) WriteDir(dir string) error {
	files, err := b.Files()
	if err != nil {
		return err
	}
	return WriteFiles(dir, files)
}

// WriteFiles writes each file so that a crash or a power cut leaves either the
// old or the new one whole, and the new ones once it has returned.
func WriteFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for name, data := range files {
		errs = append(errs, durable.Replace(filepath.Join(dir, name), data, 0o644))
	}
	return errors.Join(errs...)
}
