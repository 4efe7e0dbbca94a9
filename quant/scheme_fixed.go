package quant

// Fixed point: uniform lattices fine enough that rounding hardly matters, in a
// ring of whole bytes. Fixed16 holds shards of up to 128, Fixed32 of up to
// 2048. Fixed32's range is chosen so that the bound on the squared norm of the
// largest vector, MaxDimension coordinates, still fits an int64: it is 2^60.8.
var (
	Fixed16 = register(schemeSpec{name: "fixed16", q: 255, l: 4, m: 4063.7394180807, sd: 101.3313, width: 16,
		about: "fixed point, integers -255..255"})
	Fixed32 = register(schemeSpec{name: "fixed32", q: 1<<20 - 1, l: 6, m: 30541931288.81, sd: 3748116, width: 32,
		about: "fixed point, integers -(2^20-1)..2^20-1"})
)
