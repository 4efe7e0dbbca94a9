package model

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/layouts.txt anew")

// The order of a layout's entries, their names, shapes and sizes are part of the
// protocol: devices and coordinator cut one vector by them.
func TestLayoutsStayAsTheyAre(t *testing.T) {
	var b strings.Builder
	configs := []struct {
		name string
		c    Config
	}{{"starling", BERT(20, 8, 1, 2, 6)}, {"vit", NewViT(8, 1, 4, 2, 3)}}
	for _, kind := range []string{"bert", "roberta", "distilbert"} {
		c := BERT(20, 8, 1, 2, 6)
		c.ModelType, c.Pooling = kind, PoolHF
		if architectures[kind].types {
			c.TypeVocabSize = 2
		}
		configs = append(configs, struct {
			name string
			c    Config
		}{kind, c})
	}
	for _, x := range configs {
		for _, m := range []Method{
			{RMax: 4, Alpha: 4}, {Kind: MethodHead}, {Kind: MethodBitFit}, {Kind: MethodFull},
			{Kind: MethodAdapter, Bottleneck: 2}, {Kind: MethodCompacter, Bottleneck: 4, Blocks: 2},
		} {
			m.RMax, m.Alpha, m.Task = max(m.RMax, 1), max(m.Alpha, 1), x.c.DefaultTask()
			l, err := NewLayout(x.c, m, 3)
			if err != nil {
				t.Fatal(err)
			}
			rank := 0
			if m.Ranked() {
				rank = 2
			}
			fmt.Fprintf(&b, "%s %s: %d values at rank %d\n", x.name, m.Kind, l.Size(rank), rank)
			for _, s := range l.Spans(rank) {
				fmt.Fprintf(&b, "  %s %v at %d\n", s.Name, s.Shape, s.Offset)
			}
		}
	}
	golden := filepath.Join("testdata", "layouts.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Split(b.String(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(have) || have[i] != line {
			t.Fatalf("line %d is no longer %q (a change here is one of the protocol: bump its version)", i+1, line)
		}
	}
}
