package quant

// The uniform lattices: every integer in -Q..Q.
var (
	Int5 = register(schemeSpec{name: "int5", q: 15, l: 3.0, m: 25.0414, sd: 5.178, about: "integers -15..15"})
	Int4 = register(schemeSpec{name: "int4", q: 7, l: 2.5, m: 7.8287, sd: 2.928, about: "integers -7..7"})
	Int3 = register(schemeSpec{name: "int3", q: 3, l: 2.0, m: 2.2306, sd: 1.367, about: "integers -3..3"})
	Tern = register(schemeSpec{name: "tern", q: 1, l: 1.4, m: 0.5175, sd: 0.432, about: "integers -1..1"})
)
