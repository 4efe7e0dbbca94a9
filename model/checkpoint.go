package model

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Files of a checkpoint folder. The first two are PEFT's.
const (
	AdapterFile       = "adapter_model.safetensors"
	AdapterConfigFile = "adapter_config.json"
	CheckpointFile    = "starling.json"
	CheckpointBase    = "base" // the base in Hugging Face layout, so that the folder is complete
)

// CheckpointInfo is the content of starling.json in a checkpoint.
type CheckpointInfo struct {
	Job          string             `json:"job,omitempty"`
	Version      int                `json:"version"` // of the adapter: how many rounds were committed
	Seq          int                `json:"seq"`     // tokens a text is cut or padded to
	Labels       []string           `json:"labels"`
	Method       Method             `json:"lora"`
	BaseSHA256   string             `json:"base_sha256"`             // of the base's blob
	RankAccuracy map[string]float64 `json:"rank_accuracy,omitempty"` // by rank in decimal, on held-out data
	BestRank     int                `json:"best_rank"`               // chosen on validation data; 0 where none was
	Privacy      string             `json:"privacy,omitempty"`       // the guarantee in one line, or why there is none
	Devices      int                `json:"devices,omitempty"`       // enrolled, with data of their own
	UpdateBytes  int                `json:"update_bytes,omitempty"`  // of the largest masked update that a device sends in a round
	// Simulated is an adapter that a simulation made: all of its data was read in one
	// place, and what Privacy says is of a deployment that there was not.
	Simulated bool `json:"simulated,omitempty"`
	// FreshHead is an adapter that was imported without a head, over a base that has none either: its
	// answers are guesses until it is trained.
	FreshHead bool `json:"fresh_head,omitempty"`
}

// ParseCheckpointInfo reads starling.json without checking its values. Older files call the
// version its round.
func ParseCheckpointInfo(text []byte) (CheckpointInfo, error) {
	info := struct {
		CheckpointInfo
		Round int `json:"round"`
	}{}
	if err := json.Unmarshal(text, &info); err != nil {
		return CheckpointInfo{}, fmt.Errorf("%s: %w", CheckpointFile, err)
	}
	if info.Version == 0 {
		info.Version = info.Round
	}
	return info.CheckpointInfo, nil
}

func (c CheckpointInfo) validate() error {
	switch {
	case c.Seq < 1 || c.Seq > maxPositions:
		return fmt.Errorf("%w: %s: seq is %d, want 1..%d", ErrConfig, CheckpointFile, c.Seq, maxPositions)
	case len(c.Labels) == 1 || len(c.Labels) > maxClasses: // a layout says whether it may have none
		return fmt.Errorf("%w: %s: %d labels, want 2..%d", ErrConfig, CheckpointFile, len(c.Labels), maxClasses)
	case c.BestRank < 0 || c.BestRank > c.Method.RMax:
		return fmt.Errorf("%w: %s: best_rank is %d, want 0..r_max %d", ErrConfig, CheckpointFile, c.BestRank, c.Method.RMax)
	}
	for k := range c.RankAccuracy {
		if r, err := strconv.Atoi(k); err != nil || r < 0 || r > c.Method.RMax {
			return fmt.Errorf("%w: %s: rank_accuracy has the rank %q, want 0..%d", ErrConfig, CheckpointFile, k, c.Method.RMax)
		}
	}
	return nil
}

// Checkpoint is a released adapter with what is needed to use it.
type Checkpoint struct {
	CheckpointInfo
	Base    *Base
	Adapter *Adapter
}

// WriteCheckpoint writes the folder: adapter_model.safetensors, adapter_config.json, starling.json, README.md and
// base/. It takes an empty Method from the adapter and an empty BaseSHA256 from the base. It does not rewrite the
// base of an earlier checkpoint. If a checkpoint in one of beside has the same base and labels, it links that base
// where the file system can.
func WriteCheckpoint(dir string, c *Checkpoint, beside ...string) error {
	lay := c.Adapter.layout
	info := c.CheckpointInfo
	info.Method = lay.Method
	if err := info.validate(); err != nil {
		return err
	}
	if most := c.Base.Config.MaxTokens(); info.Seq > most {
		return fmt.Errorf("%w: sequences of %d tokens, the base has positions for %d", ErrConfig, info.Seq, most)
	}
	if len(info.Labels) != lay.Classes {
		return fmt.Errorf("%w: %d labels for %d classes", ErrConfig, len(info.Labels), lay.Classes)
	}
	if info.BaseSHA256 == "" {
		sum, err := c.Base.SHA256()
		if err != nil {
			return err
		}
		info.BaseSHA256 = hex.EncodeToString(sum[:])
	}
	weights, err := EncodeAdapter(c.Adapter)
	if err != nil {
		return err
	}
	files := map[string][]byte{AdapterFile: weights, CardFile: c.Card(lay.Method.RMax, formatCheckpoint)}
	if lay.plainLoRA() {
		files[CardFile] = c.Card(lay.Method.RMax, ExportPEFT)
		if files[AdapterConfigFile], err = marshalFile(newPEFTConfig(lay, lay.Method.RMax)); err != nil {
			return err
		}
	}
	if files[CheckpointFile], err = marshalFile(info); err != nil {
		return err
	}
	base := Release{Base: c.Base, Labels: info.Labels}
	if !holdsBase(dir, info.BaseSHA256) && !base.linkFrom(beside, dir, info) {
		if err := base.Write(filepath.Join(dir, CheckpointBase)); err != nil {
			return err
		}
	}
	return WriteFiles(dir, files)
}

// ReadCheckpoint reads a folder written by WriteCheckpoint and checks that its
// parts fit each other.
func ReadCheckpoint(dir string) (*Checkpoint, error) {
	c, err := readCheckpoint(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return c, nil
}

func readCheckpoint(dir string) (*Checkpoint, error) {
	fsys := os.DirFS(dir)
	meta, err := ReadFile(fsys, CheckpointFile, maxJSON)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{}
	if c.CheckpointInfo, err = ParseCheckpointInfo(meta); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Base, err = LoadBaseDir(filepath.Join(dir, CheckpointBase)); err != nil {
		return nil, err
	}
	sum, err := c.Base.SHA256()
	if err != nil {
		return nil, err
	}
	if got := hex.EncodeToString(sum[:]); got != c.BaseSHA256 {
		return nil, fmt.Errorf("model: the base's SHA-256 is %s, the adapter was trained on %s", got, c.BaseSHA256)
	}
	lay, err := NewLayout(c.Base.Config, c.Method, len(c.Labels))
	if err != nil {
		return nil, err
	}
	if c.Seq > c.Base.Config.MaxTokens() {
		return nil, fmt.Errorf("%w: %s: seq is %d, the base has positions for %d", ErrConfig, CheckpointFile, c.Seq, c.Base.Config.MaxTokens())
	}
	weights, err := ReadFile(fsys, AdapterFile, maxBase)
	if err != nil {
		return nil, err
	}
	c.Adapter, err = ParseAdapter(lay, weights)
	return c, err
}
