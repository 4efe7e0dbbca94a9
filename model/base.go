package model

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Names of the files of a base in Hugging Face layout.
const (
	ConfigFile    = "config.json"
	WeightsFile   = "model.safetensors"
	TokenizerFile = "tokenizer.json"
)

// maxBase bounds a base file read from disk: 4 GiB.
const maxBase = 4 << 30

// Format names the storage of a base's large tensors.
type Format string

const (
	F32  Format = "f32"
	BF16 Format = "bf16"
	NF4  Format = "nf4" // matrices in NF4, the rest in f32
)

// ErrNoTensor is a name that no tensor of the base has.
var ErrNoTensor = errors.New("model: no such tensor")

// ShapeError says that a base's tensor does not fit its configuration.
type ShapeError struct {
	Tensor    string
	Got, Want []int // Got is nil where the tensor is missing
}

func (e *ShapeError) Error() string {
	if e.Got == nil && strings.HasPrefix(e.Tensor, "pooler.") {
		return fmt.Sprintf("model: base has no tensor %q, which its classifier's pooling reads (want shape %v): "+
			"with \"pooling\": \"mean\" in its config.json the head reads the mean of the tokens instead", e.Tensor, e.Want)
	}
	if e.Got == nil {
		return fmt.Sprintf("model: base has no tensor %q (want shape %v)", e.Tensor, e.Want)
	}
	return fmt.Sprintf("model: base tensor %q has shape %v, want %v", e.Tensor, e.Got, e.Want)
}

// Base is a frozen model with its tokenizer. It is immutable once made. One that was
// read from files or with OpenBlob holds no weights but reads them where they lie,
// whenever they are asked for: the files must stay as they are.
type Base struct {
	Config    Config
	Tensors   []Tensor // Config.BaseTensors order, float32; nil where they stay in files
	Tokenizer []byte   // tokenizer.json
	stored    *SafeTensors
}

// NewBase checks the tensors against the configuration and packs them in the
// given format. What the base then computes with is what the format holds, so
// every device that loads it has the same weights, bit for bit.
func NewBase(c Config, tensors []Tensor, tokenizer []byte, format Format) (*Base, error) {
	if format != F32 && format != BF16 && format != NF4 {
		return nil, fmt.Errorf("%w: format %q, want f32, bf16 or nf4", ErrConfig, format)
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	byName := map[string]Tensor{}
	for _, t := range tensors {
		byName[t.Name] = t
	}
	st := &SafeTensors{Metadata: map[string]string{"format": "pt"}}
	for _, spec := range c.BaseTensors() {
		t, ok := byName[spec.Name]
		if !ok {
			return nil, &ShapeError{Tensor: spec.Name, Want: spec.Shape}
		}
		if !slices.Equal(t.Shape, spec.Shape) || len(t.Data) != Elements(spec.Shape) {
			return nil, &ShapeError{spec.Name, t.Shape, spec.Shape}
		}
		var err error
		switch {
		case format == NF4 && packs(spec):
			err = st.AddNF4(t.Name, t.Shape, t.Data)
		case format == BF16 && packs(spec):
			err = st.Add(t.Name, "BF16", t.Shape, t.Data)
		default:
			err = st.Add(t.Name, "F32", t.Shape, t.Data)
		}
		if err != nil {
			return nil, err
		}
	}
	return newBase(c, st, tokenizer)
}

// packs reports whether a tensor's values may be fewer than 32 bits: matrices, but for
// the small ones that every other value passes through.
func packs(t TensorSpec) bool {
	return len(t.Shape) == 2 && !strings.HasPrefix(t.Name, "pooler.") && t.Name != typesName &&
		t.Name != T5EncoderBias && t.Name != T5DecoderBias && !strings.HasSuffix(t.Name, distanceTable)
}

// newBase checks the stored tensors and decodes them all.
func newBase(c Config, st *SafeTensors, tokenizer []byte) (*Base, error) {
	b, err := openBase(c, st, tokenizer)
	if err != nil {
		return nil, err
	}
	for _, spec := range c.BaseTensors() {
		t, err := b.stored.Tensor(spec.Name)
		if err != nil {
			return nil, err
		}
		b.Tensors = append(b.Tensors, t)
	}
	return b, nil
}

// openBase checks every stored tensor's shape and values without decoding it.
func openBase(c Config, st *SafeTensors, tokenizer []byte) (*Base, error) {
	if len(tokenizer) > maxTokenizer {
		return nil, fmt.Errorf("%w: tokenizer.json has %d bytes without white space, limit %d", ErrConfig, len(tokenizer), maxTokenizer)
	}
	b := &Base{Config: c, Tokenizer: tokenizer, stored: st}
	if c.TypeVocabSize == 0 && hasTensor(st, typesName) { // left out, it would be another model
		return nil, fmt.Errorf("%w: type_vocab_size is 0, but there are %s", ErrConfig, typesName)
	}
	for _, spec := range c.BaseTensors() {
		if !hasTensor(st, spec.Name) {
			return nil, &ShapeError{Tensor: spec.Name, Want: spec.Shape}
		}
		shape, err := st.checkFinite(spec.Name)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(shape, spec.Shape) {
			return nil, &ShapeError{spec.Name, shape, spec.Shape}
		}
	}
	return b, nil
}

func hasTensor(st *SafeTensors, name string) bool { _, ok := st.Lookup(name); return ok }

// Tensor returns the values of a tensor by name; one that the base does not have
// is ErrNoTensor. The caller must not change them. Where the base holds no weights each
// call reads and decodes anew.
func (b *Base) Tensor(name string) ([]float32, error) {
	for _, t := range b.Tensors {
		if t.Name == name {
			return t.Data, nil
		}
	}
	if b.Tensors == nil {
		for _, spec := range b.Config.BaseTensors() {
			if spec.Name == name {
				t, err := b.stored.Tensor(spec.Name)
				return t.Data, err
			}
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrNoTensor, name)
}

// Len is the number of values of a tensor by name, 0 where there is none,
// without decoding it.
func (b *Base) Len(name string) int {
	for _, spec := range b.Config.BaseTensors() {
		if spec.Name == name {
			return Elements(spec.Shape)
		}
	}
	return 0
}

// HoldsNF4 reports whether StoredNF4 returns a tensor, without reading its codes.
func (b *Base) HoldsNF4(name string) (bool, error) {
	g, err := b.stored.nf4Group(name)
	return err == nil && g != nil && g.standard(), err
}

// StoredNF4 returns a tensor's codes (first value in the high nibble), not to be
// changed, and its scales, one for 64 values, where the base holds it in NF4
// with the standard levels; ok is false where it does not.
func (b *Base) StoredNF4(name string) (codes []byte, absmax []float32, ok bool, err error) {
	g, err := b.stored.nf4Group(name)
	if err != nil || g == nil || !g.standard() {
		return nil, nil, false, err
	}
	codes, err = g.codes.bytes()
	return codes, g.absmax, err == nil, err
}

// Metadata keys of a blob.
const (
	blobConfig    = "config.json"
	blobTokenizer = "tokenizer.json"
)

// Blob packs the base into one self-contained file for /blob/<sha256>: a
// safetensors file with config.json and tokenizer.json in its metadata. The
// same base gives the same bytes.
func (b *Base) Blob() ([]byte, error) {
	st, err := b.blob()
	if err != nil {
		return nil, err
	}
	return st.Encode()
}

// View is Blob for a base that is too large to hold: it reads the weights where they
// lie.
func (b *Base) View() (*Blob, error) {
	st, err := b.blob()
	if err != nil {
		return nil, err
	}
	return st.open()
}

func (b *Base) blob() (*SafeTensors, error) {
	cfg, err := json.Marshal(b.Config)
	if err != nil {
		return nil, err
	}
	meta := map[string]string{"format": "pt", blobConfig: string(cfg), blobTokenizer: string(b.Tokenizer)}
	return &SafeTensors{Metadata: meta, Tensors: b.stored.Tensors}, nil
}

// SHA256 is the hash of the blob, which names the base. It reads all weights.
func (b *Base) SHA256() (sum [32]byte, err error) {
	blob, err := b.View()
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	if _, err := blob.WriteTo(h); err != nil {
		return sum, err
	}
	return [32]byte(h.Sum(nil)), nil
}

// ParseBlob reads a result of Blob. The base may keep blob.
func ParseBlob(blob []byte) (*Base, error) {
	st, err := ParseSafeTensors(blob)
	if err != nil {
		return nil, err
	}
	return fromBlob(st, newBase)
}

// OpenBlob is ParseBlob for a device with little memory: it makes the same
// checks but holds no tensor. Tensors is nil; Tensor and StoredNF4 read from blob,
// of size bytes, which the base keeps.
func OpenBlob(blob io.ReaderAt, size int64) (*Base, error) {
	st, err := ReadSafeTensors(blob, size)
	if err != nil {
		return nil, err
	}
	return fromBlob(st, openBase)
}

func fromBlob(st *SafeTensors, make func(Config, *SafeTensors, []byte) (*Base, error)) (*Base, error) {
	cfg, ok := st.Metadata[blobConfig]
	if !ok {
		return nil, fmt.Errorf("%w: a base's blob carries %q in its metadata", ErrSafetensors, blobConfig)
	}
	c, err := ParseConfig([]byte(cfg))
	if err != nil {
		return nil, err
	}
	return make(c, st, []byte(st.Metadata[blobTokenizer]))
}
