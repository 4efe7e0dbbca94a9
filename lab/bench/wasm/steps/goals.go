package main

import (
	"fmt"
	"io"
	"strings"
)

// How the engines' names begin.
const exact, fused = "native (", "native fused ("

// printGoals prints what was to be reached, and what this run reached. Ratios of one core are of processor
// time, those of two of the wall, which a busy machine stretches.
func printGoals(w io.Writer, all []result) {
	fmt.Fprintf(w, "\n### Goals\n\n| what | goal | reached |\n| --- | --- | --- |\n")
	row := func(what, goal string, ratio float64) {
		reached := "not measured"
		if ratio > 0 {
			reached = fmt.Sprintf("%.2fx", ratio)
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", what, goal, reached)
	}
	gemm := fastest(all, "gemm-512x512x512")
	blas := find(gemm, "numpy")
	row("512 x 512 x 512, exact: of OpenBLAS's speed", "0.42x or more", over(blas, find(gemm, exact), cpu))
	row("512 x 512 x 512, fused: of OpenBLAS's speed", "0.75x or more", over(blas, find(gemm, fused), cpu))
	for _, c := range []struct{ name, what, exact, fused string }{
		{"small-b8-s64", "BERT-small", "1.7x or less", "1.0x or less"},
		{"tiny-b8-s64", "tiny, 8 x 64", "1.3x or less", "1.0x or less"},
		{"tiny-b16-s32", "tiny, 16 x 32", "1.3x or less", "1.0x or less"},
	} {
		rows := fastest(all, c.name)
		torch := find(rows, "torch")
		row(c.what+", exact: of PyTorch's time", c.exact, over(find(rows, exact), torch, cpu))
		row(c.what+", fused: of PyTorch's time", c.fused, over(find(rows, fused), torch, cpu))
		torch = findTwo(rows, "torch")
		row(c.what+", exact, two cores: of PyTorch's two threads' time", c.exact, over(findTwo(rows, exact), torch, wall))
		row(c.what+", fused, two cores: of PyTorch's two threads' time", c.fused, over(findTwo(rows, fused), torch, wall))
	}
	for _, name := range []string{"small-b8-s64", "tiny-b8-s64"} {
		rows := fastest(all, name)
		twice := func(what, goal, engine string) {
			row(name+": "+what+", of one's speed", goal, over(find(rows, engine), findTwo(rows, engine), wall))
		}
		twice("two node workers", "1.8x or more", "node v")
		twice("two node workers, fused", "1.8x or more", "node fused")
		row(name+": two node processes that share nothing, of one's speed", "the ceiling of these", apart(all, name))
		twice("two cores", "", exact)
		twice("two cores, fused", "", fused)
		twice("PyTorch's two threads", "", "torch")
	}
}

func cpu(r *result) float64  { return r.CPUMS }
func wall(r *result) float64 { return r.MedianMS }

// over returns a/b of one measure; 0 if one is missing.
func over(a, b *result, of func(*result) float64) float64 {
	if a == nil || b == nil || of(b) == 0 {
		return 0
	}
	return of(a) / of(b)
}

// findTwo is find for an engine on two cores, threads or workers.
func findTwo(rows []result, engine string) *result {
	for i := range rows {
		if e := rows[i].Engine; strings.HasPrefix(e, engine) && strings.Contains(e, ", 2 ") {
			return &rows[i]
		}
	}
	return nil
}

// apart returns how fast two processes at once are together, in speeds of one alone: the most of any round.
func apart(all []result, name string) (best float64) {
	one := find(fastest(all, name), "node v")
	if one == nil {
		return 0
	}
	var rows []result // two a round
	for _, r := range all {
		if r.Name == name && strings.HasSuffix(r.Engine, processes) {
			rows = append(rows, r)
		}
	}
	for ; len(rows) >= 2; rows = rows[2:] {
		best = max(best, one.MedianMS/rows[0].MedianMS+one.MedianMS/rows[1].MedianMS)
	}
	return best
}
