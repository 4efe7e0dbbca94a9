package quant

// NF4 is the default masked scheme: the sixteen levels of 4-bit NormalFloat,
// rounded to a grid of twelfths so that they can be summed.
var NF4 = register(schemeSpec{
	name:    "nf4",
	symbols: []int32{-12, -8, -6, -5, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 9, 12},
	q:       12, l: 2.6, m: 21.3648, sd: 10.235,
	about: "NF4 levels on the 1/12 grid",
})
