package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/quant/nf4"
)

// BenchmarkGEMM times products on one core, in processor time: rows x columns x
// terms; A and B as they are (NN), B transposed (NT), A transposed (TN). The names of
// fused products end so.
func BenchmarkGEMM(b *testing.B) {
	for _, s := range [][3]int{{512, 512, 512}, {512, 2048, 512}, {512, 512, 2048}, {512, 16, 512}, {512, 512, 16},
		{16, 512, 512}, {64, 64, 64}, {64, 64, 32}, {512, 128, 128}} {
		for _, layout := range []string{"NN", "NT", "TN"} {
			m, n, k := s[0], s[1], s[2]
			p := Product{B: 4 * m * k, C: 4 * (m*k + n*k), Rows: []Axis{{m, k, 0, n}}, Cols: []Axis{{n, 0, 1, 1}},
				Terms: []Axis{{k, 1, n, 0}}}
			switch layout {
			case "NT":
				p.Cols[0].B, p.Terms[0].B = k, 1
			case "TN":
				p.Rows[0].A, p.Terms[0].A = 1, m
			}
			memory := make([]float32, m*k+n*k+m*n)
			fill(rand.New(rand.NewPCG(3, 4)), bytesOf(memory), 0)
			for _, arithmetic := range []string{"", "-fused"} {
				p.Fused = arithmetic != ""
				pl, err := Prepare(p, 4*len(memory))
				if err != nil {
					b.Fatal(err)
				}
				for _, kernel := range Native() {
					if p.Fused && !kernel.Fuses() {
						continue
					}
					b.Run(fmt.Sprintf("%dx%dx%d/%s/%s%s", m, n, k, layout, kernel.name, arithmetic), func(b *testing.B) {
						began := cputime.Now()
						for b.Loop() {
							if err := kernel.Run(b.Context(), pl, bytesOf(memory), nil); err != nil {
								b.Fatal(err)
							}
						}
						b.ReportMetric(2*float64(m*n*k)/cputime.Each(b, began), "GFLOP/s")
					})
				}
			}
		}
	}
}

// BenchmarkFew times a row's product with 4-bit columns, in processor time: columns x terms of a small decoder's maps.
func BenchmarkFew(b *testing.B) {
	for _, s := range [][2]int{{1536, 576}, {576, 1536}, {49152, 576}} {
		n, k := s[0], s[1]
		q := &NF4{Codes: 0, Scales: n * k / 2, Len: n * k, Block: nf4.Block}
		p := Product{NF4: q, A: q.Scales + n*k/16, Cols: []Axis{{n, 0, k, 1}}, Terms: []Axis{{k, 1, 1, 0}}}
		p.C = p.A + 4*k
		memory := make([]float32, p.C/4+n)
		fill(rand.New(rand.NewPCG(3, 4)), bytesOf(memory), 0)
		pl, err := Prepare(p, 4*len(memory))
		if err != nil {
			b.Fatal(err)
		}
		for _, kernel := range Native() {
			decoding := *kernel
			decoding.name, decoding.codes = kernel.name+"-packed", nil
			for _, k := range []*Kernel{kernel, &decoding} {
				b.Run(fmt.Sprintf("%dx%d/%s", n, p.Terms[0].Size, k.name), func(b *testing.B) {
					began := cputime.Now()
					for b.Loop() {
						if err := k.Run(b.Context(), pl, bytesOf(memory), nil); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(pl.work)/cputime.Each(b, began), "Gweights/s")
				})
			}
		}
	}
}
