package coordinator

import (
	"crypto/sha256"
	"io"
	"math"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/program"
)

// base_format nf4: devices fetch 4-bit codes, their programs hold the codes, and what
// a device makes of the base it fetched is the same program.
func TestPackedBase(t *testing.T) {
	c := model.BERT(30, 64, 2, 2, 8)
	whole, err := model.RandomBase(c, 1, tinyBase(t).Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	size := map[string]int64{}
	for _, format := range []string{"", "nf4"} {
		j := tinyJob(4)
		j.BaseFormat = format
		b, err := j.OpenBase(whole)
		if err != nil {
			t.Fatal(err)
		}
		core, err := core.New(j, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		size[format] = core.Terms().BaseBlob.Size()
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(core.Terms().BaseBlob, 0, size[format])); err != nil || [32]byte(h.Sum(nil)) != core.Terms().BaseRef.SHA256 {
			t.Fatalf("%q: the base is named by another hash than its bytes have: %v", format, err)
		}
		code, p := loadStep(t, core, 2)
		packed := 0
		for _, f := range p.Manifest().Frozen {
			if f.NF4 != nil {
				packed++
			} else if len(f.Shape) == 2 && format == "nf4" && f.Len() > 64*64 {
				t.Errorf("%s lies in a device's memory as float32%v", f.Name, f.Shape)
			}
		}
		if (packed > 0) != (format == "nf4") {
			t.Errorf("%q: %d tensors are 4-bit codes in a device's memory", format, packed)
		}
		announced, err := announce(core.Terms(), [16]byte{}, true)
		if err != nil {
			t.Fatal(err)
		}
		fetched, err := model.OpenBlob(core.Terms().BaseBlob, size[format])
		if err != nil {
			t.Fatal(err)
		}
		again, err := program.Remake(t.Context(), math.Inf(1), announced.Name, announced.Labels, announced.Recipe, fetched, 2, program.Hosts[0])
		if err != nil || sha256.Sum256(again) != sha256.Sum256(code) {
			t.Errorf("%q: made again it is another program: %v", format, err)
		}
	}
	if 4*size["nf4"] > size[""] {
		t.Errorf("%d bytes as nf4, %d as it is", size["nf4"], size[""])
	}
}
