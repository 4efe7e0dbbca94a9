package coordinator

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/wasm/program"
)

// offerPatience is how long the end of a job waits for a browser to fetch the
// model: it hangs up when it has it.
const offerPatience = time.Minute

// offer is the model that browsers may take along when the job is over, none
// where there is no browser to take it. It is what anybody may have: the released
// adapter, after noise. A job whose model cannot be offered has ended all the same.
func (c *Coordinator) offer() (m wire.Model) {
	if c.core.Version() == 0 || !c.t.Method.Task.Tried() || !slices.ContainsFunc(c.fleet.All(), func(d *fleet.Device) bool { return d.Browser }) {
		return m
	}
	rank := c.releasedRank()
	m, err := c.makeOffer(rank)
	if err != nil {
		c.log.Error("no model is offered to browsers", "rank", rank, "error", err)
		return wire.Model{}
	}
	return m
}

// releasedRank is the rank that validation chose, or the largest.
func (c *Coordinator) releasedRank() int {
	if c.cfg.Evaluator != nil {
		return c.total.BestRank
	}
	ranks := c.t.Ranks()
	return ranks[len(ranks)-1]
}

func (c *Coordinator) makeOffer(rank int) (m wire.Model, err error) {
	code, err := program.Forward(program.Spec{Job: c.t.Job, Base: c.t.Base, Rank: rank, Host: program.Hosts[1], Compact: c.t.Compact})
	if err != nil {
		return m, err
	}
	values, _, err := quant.PackUpdate(c.core.Adapter().Slice(rank), nil, "f32", "none")
	if err != nil {
		return m, err
	}
	archive, err := c.archive(rank)
	if err != nil {
		return m, err
	}
	return wire.Model{
		Rank: uint16(rank), Adapter: c.blobs.keep(monitor.PartModel, values), Archive: c.blobs.keep(monitor.PartModel, archive),
		Programs: []wire.Program{{Host: program.Hosts[1], Blob: c.blobs.keep(monitor.PartModel, code)}},
	}, nil
}

// archive is a zip of the adapter at a rank for other software: a PEFT folder
// without its base where PEFT has a name for it, else the bare tensors.
func (c *Coordinator) archive(rank int) ([]byte, error) {
	info, err := c.checkpointInfo(c.status.Validation)
	if err != nil {
		return nil, err
	}
	adapter := c.core.Adapter()
	ck := &model.Checkpoint{CheckpointInfo: info, Base: c.t.Base, Adapter: adapter}
	format := "peft"
	files, err := model.PEFTFiles(adapter, c.t.Base, rank)
	if err != nil {
		format = "safetensors"
		data, err := model.EncodeSlice(adapter, rank)
		if err != nil {
			return nil, err
		}
		files = map[string][]byte{"adapter.safetensors": data}
	}
	files[model.CardFile] = ck.Card(rank, format)
	return zipped(fmt.Sprintf("adapter-rank-%d/", rank), files)
}

// zipped packs files below a folder; equal files make an equal archive.
func zipped(folder string, files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.Create(folder + name)
		if err == nil {
			_, err = w.Write(files[name])
		}
		if err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}

// EndPatience is how long to Wait for devices after Run: at least the given time, and more if
// browsers take the model along.
func (c *Coordinator) EndPatience(least time.Duration) time.Duration {
	if last, ok := c.lastWord.(*wire.Finished); ok && last.Model.Offered() {
		return max(least, offerPatience)
	}
	return least
}
