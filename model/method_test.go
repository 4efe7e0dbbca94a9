package model

import (
	"errors"
	"strings"
	"testing"
)

// Trained values over BERT-small (512 wide, 4 layers) with a head of 8 classes, as
// published for BitFit (27,656 with the head, 0.096 %), LoRA and DyLoRA; the names and
// their order are part of the protocol.
func TestMethodSizes(t *testing.T) {
	c := BERT(30522, 512, 4, 8, 512)
	c.Pooling, c.TypeVocabSize = PoolHF, 2
	base := 0
	for _, s := range c.BaseTensors() {
		base += Elements(s.Shape)
	}
	if base != 28_763_648 {
		t.Errorf("the base has %d values", base)
	}
	for _, m := range []struct {
		method     Method
		rank, want int
	}{
		{Method{RMax: 16, Alpha: 16}, 16, 135_176},
		{Method{RMax: 16, Alpha: 16}, 1, 12_296},
		{Method{RMax: 16, Alpha: 16}, 0, 4_104},
		{Method{RMax: 1, Alpha: 1, Kind: MethodHead}, 0, 4_104},
		{Method{RMax: 1, Alpha: 1, Kind: MethodBitFit}, 0, 27_656},
		{Method{RMax: 1, Alpha: 1, Kind: MethodFull}, 0, 28_763_648 + 4_104},
		{Method{RMax: 1, Alpha: 1, Kind: MethodAdapter}, 0, 270_600},
		{Method{RMax: 1, Alpha: 1, Kind: MethodAdapter, Bottleneck: 16}, 0, 8*(2*512*16+512+16) + 4_104},
		{Method{RMax: 1, Alpha: 1, Kind: MethodCompacter}, 0, 17_288}, // 16.8k to 17.3k are published
		{Method{RMax: 1, Alpha: 1, Kind: MethodCompacter, Bottleneck: 32, Blocks: 4}, 0, 8*(3*(512+32)) + 64 + 4_104},
		{Method{RMax: 2, Alpha: 1, Targets: "query,key,value"}, 2, 4*3*2*2*512 + 4_104},
		{Method{RMax: 2, Alpha: 1, Targets: "output.dense"}, 2, 4*2*(2*512+2048+512) + 4_104},
		{Method{RMax: 2, Alpha: 1, Also: "pooler.dense"}, 1, 4*2*1*2*512 + 512*512 + 512 + 4_104},
		{Method{RMax: 2, Alpha: 1, Also: "embeddings.LayerNorm.bias,word_embeddings"}, 0, 512 + 30522*512 + 4_104},
	} {
		l, err := NewLayout(c, m.method, 8)
		if err != nil {
			t.Errorf("%+v: %v", m.method, err)
			continue
		}
		if n := l.Size(m.rank); n != m.want {
			t.Errorf("%+v at rank %d: %d values, want %d", m.method, m.rank, n, m.want)
		}
		if l.HeadSize() != 4_104 {
			t.Errorf("%+v: a head of %d values", m.method, l.HeadSize())
		}
	}
	l, err := NewLayout(c, Method{RMax: 2, Alpha: 1, Targets: "intermediate.dense", Also: "encoder.layer.3.output.LayerNorm"}, 8)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range l.Entries()[6:] {
		names = append(names, e.Name)
	}
	want := "encoder.layer.3.intermediate.dense.lora_A.weight encoder.layer.3.intermediate.dense.lora_B.weight " +
		"encoder.layer.3.output.LayerNorm.weight.delta encoder.layer.3.output.LayerNorm.bias.delta classifier.weight classifier.bias"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the order is %s", got)
	}
}

func TestMethodRefuses(t *testing.T) {
	c := tinyConfig()
	for want, m := range map[string]Method{
		"method":           {RMax: 1, Alpha: 1, Kind: "dora"},
		"bottleneck is":    {RMax: 1, Alpha: 1, Kind: MethodAdapter, Bottleneck: 9},
		"bottleneck is 4":  {RMax: 1, Alpha: 1, Bottleneck: 4},
		"blocks is 3":      {RMax: 1, Alpha: 1, Kind: MethodCompacter, Blocks: 3, Bottleneck: 3},
		"blocks is 2":      {RMax: 1, Alpha: 1, Kind: MethodAdapter, Blocks: 2},
		"no linear map":    {RMax: 1, Alpha: 1, Targets: "query,classifier"},
		"ends in \"uery\"": {RMax: 1, Alpha: 1, Targets: "uery"},
		"also: the base":   {RMax: 1, Alpha: 1, Also: "lm_head"},
		"64":               {RMax: 1, Alpha: 1, Targets: strings.Repeat("query,", 64) + "query"},
		"4096":             {RMax: 1, Alpha: 1, Also: strings.Repeat("q", 5000)},
		"only lora":        {RMax: 1, Alpha: 1, Kind: MethodBitFit, Targets: "query"},
		"every tensor":     {RMax: 1, Alpha: 1, Kind: MethodFull, Also: "pooler.dense"},
		"the name":         {RMax: 1, Alpha: 1, Targets: "query,"},
	} {
		if _, err := NewLayout(c, m, 3); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want it to say %q", m, err, want)
		}
	}
}
