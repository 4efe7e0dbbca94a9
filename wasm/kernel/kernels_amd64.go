package kernel

import "golang.org/x/sys/cpu"

// native asks the processor and, for the registers, the system.
func native() (list []*Kernel) {
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		list = append(list, avx512)
	}
	if cpu.X86.HasAVX2 {
		list = append(list, newAVX2(cpu.X86.HasFMA))
	}
	return list
}

var avx512 = &Kernel{name: "avx512", heights: []int{8, 4, 2, 1}, widths: 3, tiles: [][]func(*words){
	{tile512x8x1, tile512x8x2, tile512x8x3},
	{tile512x4x1, tile512x4x2, tile512x4x3},
	{tile512x2x1, tile512x2x2, tile512x2x3},
	{tile512x1x1, tile512x1x2, tile512x1x3},
}, fused: [][]func(*words){
	{fused512x8x1, fused512x8x2, fused512x8x3},
	{fused512x4x1, fused512x4x2, fused512x4x3},
	{fused512x2x1, fused512x2x2, fused512x2x3},
	{fused512x1x1, fused512x1x2, fused512x1x3},
}, codes: tileCodes256, fusedCodes: fusedCodes256, transpose: transpose256, gather: gather256, decode: decode256, unpack: unpack256}

// newAVX2 is the kernel for 256 bits; a few processors that have it lack FMA.
func newAVX2(fma bool) *Kernel {
	k := &Kernel{name: "avx2", heights: []int{6, 4, 2, 1}, widths: 1,
		tiles:     [][]func(*words){{tile256x6}, {tile256x4}, {tile256x2}, {tile256x1}},
		codes:     tileCodes256,
		transpose: transpose256, gather: gather256, decode: decode256, unpack: unpack256}
	if fma {
		k.fused = [][]func(*words){{fused256x6}, {fused256x4}, {fused256x2}, {fused256x1}}
		k.fusedCodes = fusedCodes256
	}
	return k
}
