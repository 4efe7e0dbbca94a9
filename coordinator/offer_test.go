package coordinator

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"slices"
	"testing"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/wasm"
)

// Where a browser takes part, the job's end names the released model, and what it
// names can be fetched: the adapter to the bit, its forward pass, a PEFT folder.
func TestModelIsOfferedToBrowsers(t *testing.T) {
	tb := setTable(t, Config{Job: tinyJob(3)}, 3, func(i int, p *player) {
		if i == 1 {
			p.agent = "starling v8"
		}
	})
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	m := tb.players[1].finished.Model
	if !m.Offered() {
		t.Fatal("a browser is offered nothing")
	}
	rank, adapter := int(m.Rank), tb.c.Result().Adapter
	if rank != 3 {
		t.Errorf("rank %d, without an evaluator the largest is expected", rank)
	}
	packed := held(t, tb.c, m.Adapter.SHA256)
	values, err := quant.UnpackUpdate(packed, nil, adapter.Layout().Size(rank))
	if err != nil || !slices.Equal(values, adapter.Slice(rank)) {
		t.Errorf("the adapter is not what was released: %v", err)
	}
	code := held(t, tb.c, m.Programs[0].Blob.SHA256)
	program, err := wasm.Load(context.Background(), code, wasm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if out := program.Manifest().Outputs; len(out) != 1 || out[0].Name != "logits" || !slices.Equal(out[0].Shape, []int{1, 2}) {
		t.Errorf("the pass yields %+v", out)
	}
	if err := program.Close(); err != nil {
		t.Error(err)
	}
	archive := held(t, tb.c, m.Archive.SHA256)
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	if want := []string{"adapter-rank-3/" + model.CardFile, "adapter-rank-3/" + model.AdapterConfigFile, "adapter-rank-3/" + model.AdapterFile}; !slices.Equal(names, want) {
		t.Errorf("the archive holds %q, want %q", names, want)
	}
}

// Nobody else is offered one: compiling it would be for nothing.
func TestNoBrowserNoOffer(t *testing.T) {
	tb := setTable(t, Config{Job: tinyJob(3)}, 3, nil)
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	if tb.players[0].finished.Model.Offered() {
		t.Error("a model is offered to a fleet without browsers")
	}
}

// held are the bytes of a blob that the coordinator holds.
func held(t *testing.T, c *Coordinator, name [32]byte) []byte {
	t.Helper()
	blob, _ := c.Blob(name)
	if blob == nil {
		t.Fatalf("no blob %x", name[:6])
	}
	data, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
