package kernel

// Kernel computes tiles of C on one kind of vector unit.
type Kernel struct {
	name string
	// heights are the tile heights that tiles has, tallest first, the last one 1.
	heights []int
	// widths is the most panels of 16 columns that a tile spans.
	widths int
	// tiles computes a tile, by height (index in heights) and panels less 1; fused does so with one rounding a term.
	tiles, fused [][]func(*words)
	// codes computes a row of a panel against codes, see few.go, and fusedCodes with one rounding a term; nil: they are decoded.
	codes, fusedCodes func(*words)
	// transpose packs 8 rows of n, a multiple of 8, consecutive floats: float i of row r goes to dst[i*to+r].
	transpose func(dst *float32, to int, src *float32, from int, n int)
	// gather copies n rows of 16 consecutive floats, from apart, to rows that are to apart.
	gather func(dst *float32, to int, src *float32, from int, n int)
	// decode writes the values of n, a multiple of 16, codes that share a scale, each 16 to apart.
	decode func(dst *float32, to int, codes *byte, n int, scale float32)
	// unpack writes the values of a panel's codes, as packWords packs them; nil: they are decoded and transposed.
	unpack func(dst, words *float32, blocks int)
}

// Name returns "avx512", "avx2", "neon" or "go".
func (k *Kernel) Name() string { return k.name }

// Fuses reports whether the kernel computes fused products: without instructions for
// them only Plain does.
func (k *Kernel) Fuses() bool { return k.fused != nil }

// Plain is the twin of all others in plain Go: the same bits, much slower than
// WebAssembly code.
var Plain = &Kernel{name: "go", heights: []int{1}, widths: 1, tiles: [][]func(*words){{tilePlain}},
	fused:     [][]func(*words){{fusedPlain}},
	transpose: transposePlain, gather: gatherPlain, decode: decodePlain}

// Native returns the kernels of this processor that are faster than WebAssembly
// code, the fastest first; none where there is nothing of the kind.
func Native() []*Kernel { return native() }

// ByName returns a kernel that runs here, Plain among them.
func ByName(name string) (*Kernel, bool) {
	for _, k := range append(Native(), Plain) {
		if k.name == name {
			return k, true
		}
	}
	return nil, false
}
