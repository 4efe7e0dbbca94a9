package model

import "fmt"

// Formats of an export.
const (
	ExportPEFT   = "peft"        // an adapter for PEFT, with its base beside it
	exportMerged = "merged"      // a whole model in Hugging Face layout
	exportBare   = "safetensors" // the tensors alone
)

// Formats of GGUF files, which model/gguf writes: for cards.
const (
	ExportGGUF        = "gguf"         // the whole model
	ExportGGUFAdapter = "gguf adapter" // the adapter alone
)

// ExportFormats are what [Checkpoint.Export] writes.
func ExportFormats() []string { return []string{ExportPEFT, exportMerged, exportBare} }

// Export returns the files of the adapter at a rank, by folder ("" is the top) and name, in one of
// ExportFormats. bare leaves out the base that stands beside a PEFT adapter.
func (c *Checkpoint) Export(rank int, format string, bare bool) (folders map[string]map[string][]byte, err error) {
	var top map[string][]byte
	folders = map[string]map[string][]byte{}
	switch format {
	case ExportPEFT:
		if top, err = PEFTFiles(c.Adapter, c.Base, rank); err != nil {
			return nil, err
		}
		if !bare {
			if folders[CheckpointBase], err = c.PEFTBase().Files(); err != nil {
				return nil, err
			}
		}
	case exportMerged:
		values, err := c.Adapter.Layout().Merge(c.Base, c.Adapter.Slice(rank), rank)
		if err != nil {
			return nil, err
		}
		if top, err = (Release{Base: c.Base, Labels: c.Labels, Task: c.Method.Task, Values: values}).Files(); err != nil {
			return nil, err
		}
	case exportBare:
		data, err := EncodeSlice(c.Adapter, rank)
		if err != nil {
			return nil, err
		}
		top = map[string][]byte{"adapter.safetensors": data}
	default:
		return nil, fmt.Errorf("model: there is no export format %.40q", format)
	}
	top[CardFile] = c.Card(rank, format)
	folders[""] = top
	return folders, nil
}
