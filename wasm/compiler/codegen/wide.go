package codegen

import (
	"math"

	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// Functions that are computed in float64 and rounded once, one element at a time: right to 0.51 ulp of float32 for
// arguments in range. Sine and cosine reduce their argument in two parts and hold to |x| < 10^6.

// horner leaves c[0]*t^n + ... + c[n] on the stack, in float64.
func horner(f *emit.Func, t emit.Local, c ...float64) {
	f.F64(c[0])
	for _, ci := range c[1:] {
		f.Get(t)
		f.Op(emit.F64Mul)
		f.F64(ci)
		f.Op(emit.F64Add)
	}
}

// exp64 replaces a float64 by its exponential; arguments are clamped to +-200, beyond float32.
func exp64(f *emit.Func) {
	x, n := f.New(emit.F64), f.New(emit.F64)
	f.F64(200)
	f.Op(emit.F64Min)
	f.F64(-200)
	f.Op(emit.F64Max)
	f.Tee(x)
	f.F64(math.Log2E)
	f.Op(emit.F64Mul)
	f.Op(emit.F64Nearest)
	f.Set(n)
	f.Get(x)
	f.Get(n)
	f.F64(6.93147180369123816490e-01)
	f.Op(emit.F64Mul)
	f.Op(emit.F64Sub)
	f.Get(n)
	f.F64(1.90821492927058770002e-10)
	f.Op(emit.F64Mul)
	f.Op(emit.F64Sub)
	f.Set(x)
	c := make([]float64, 14)
	for i, fact := 13, 1.0; i >= 0; i-- {
		c[i] = 1 / fact
		fact *= float64(14 - i)
	}
	horner(f, x, c...)
	f.Get(n)
	f.TruncSat(emit.I64TruncSatF64S)
	f.I64(1023)
	f.Op(emit.I64Add)
	f.I64(52)
	f.Op(emit.I64Shl)
	f.Op(emit.F64ReinterpretI)
	f.Op(emit.F64Mul)
	f.Free(x, n)
}

// log64 replaces a positive finite float64 by its logarithm.
func log64(f *emit.Func) {
	b, e, m, z := f.New(emit.I64), f.New(emit.F64), f.New(emit.F64), f.New(emit.F64)
	f.Op(emit.I64ReinterpretF)
	f.Tee(b)
	f.I64(52)
	f.Op(emit.I64ShrU)
	f.I64(1023)
	f.Op(emit.I64Sub)
	f.Op(emit.F64ConvertI64S)
	f.Set(e)
	f.Get(b)
	f.I64(1<<52 - 1)
	f.Op(emit.I64And)
	f.I64(1023 << 52)
	f.Op(emit.I64Or)
	f.Op(emit.F64ReinterpretI)
	f.Tee(m)
	f.F64(math.Sqrt2)
	f.Op(emit.F64Gt)
	f.If()
	f.Get(m)
	f.F64(0.5)
	f.Op(emit.F64Mul)
	f.Set(m)
	f.Get(e)
	f.F64(1)
	f.Op(emit.F64Add)
	f.Set(e)
	f.End()
	// s = (m-1)/(m+1); log m = 2s (1 + s^2/3 + s^4/5 + ...)
	f.Get(m)
	f.F64(1)
	f.Op(emit.F64Sub)
	f.Get(m)
	f.F64(1)
	f.Op(emit.F64Add)
	f.Op(emit.F64Div)
	f.Tee(m)
	f.Get(m)
	f.Op(emit.F64Mul)
	f.Set(z)
	horner(f, z, 2./19, 2./17, 2./15, 2./13, 2./11, 2./9, 2./7, 2./5, 2./3, 2)
	f.Get(m)
	f.Op(emit.F64Mul)
	f.Get(e)
	f.F64(math.Ln2)
	f.Op(emit.F64Mul)
	f.Op(emit.F64Add)
	f.Free(b, e, m, z)
}

// wide1 replaces a float32 x by op(x).
func (k *kernel) wide1(op ir.Op) {
	f := k.f
	x := f.New(emit.F64)
	defer f.Free(x)
	f.Op(emit.F64PromoteF32)
	f.Set(x)
	small := func(series func(), else_ func()) {
		f.Get(x)
		f.Op(emit.F64Abs)
		f.F64(1e-4)
		f.Op(emit.F64Lt)
		f.IfType(emit.F64)
		series()
		f.Else()
		else_()
		f.End()
		f.Op(emit.F32DemoteF64)
	}
	switch op {
	case ir.Expm1:
		small(func() {
			horner(f, x, 1./6, 1./2, 1, 0)
		}, func() {
			f.Get(x)
			exp64(f)
			f.F64(1)
			f.Op(emit.F64Sub)
		})
	case ir.Log1p:
		small(func() {
			horner(f, x, -1./4, 1./3, -1./2, 1, 0)
		}, func() {
			// NaN and +Inf pass through; -1 gives -Inf, less NaN.
			f.Get(x)
			f.F64(math.Inf(1))
			f.Op(emit.F64Lt)
			f.IfType(emit.F64)
			f.Get(x)
			f.F64(-1)
			f.Op(emit.F64Gt)
			f.IfType(emit.F64)
			f.Get(x)
			f.F64(1)
			f.Op(emit.F64Add)
			log64(f)
			f.Else()
			f.F64(math.Inf(-1))
			f.F64(math.NaN())
			f.Get(x)
			f.F64(-1)
			f.Op(emit.F64Eq)
			f.Op(emit.Select)
			f.End()
			f.Else()
			f.Get(x)
			f.End()
		})
	default:
		k.sinCos(x, op == ir.Cos)
	}
}

func (k *kernel) sinCos(x emit.Local, cos bool) {
	f := k.f
	n, z, q := f.New(emit.F64), f.New(emit.F64), f.New(emit.I64)
	f.Get(x)
	f.F64(2 / math.Pi)
	f.Op(emit.F64Mul)
	f.Op(emit.F64Nearest)
	f.Tee(n)
	f.TruncSat(emit.I64TruncSatF64S)
	if cos {
		f.I64(1)
		f.Op(emit.I64Add)
	}
	f.Set(q)
	f.Get(x)
	f.Get(n)
	f.F64(1.57079632673412561417e+00)
	f.Op(emit.F64Mul)
	f.Op(emit.F64Sub)
	f.Get(n)
	f.F64(6.07710050650619224932e-11)
	f.Op(emit.F64Mul)
	f.Op(emit.F64Sub)
	f.Tee(x)
	f.Get(x)
	f.Op(emit.F64Mul)
	f.Set(z)
	f.Get(q)
	f.I64(1)
	f.Op(emit.I64And)
	f.Op(emit.I64Eqz)
	f.IfType(emit.F64)
	horner(f, z, -1./1307674368000, 1./6227020800, -1./39916800, 1./362880, -1./5040, 1./120, -1./6, 1)
	f.Get(x)
	f.Op(emit.F64Mul)
	f.Else()
	horner(f, z, 1./20922789888000, -1./87178291200, 1./479001600, -1./3628800, 1./40320, -1./720, 1./24, -1./2, 1)
	f.End()
	f.Set(z)
	f.Get(z)
	f.Op(emit.F64Neg)
	f.Get(z)
	f.Get(q)
	f.I64(2)
	f.Op(emit.I64And)
	f.Op(emit.I64Eqz)
	f.Op(emit.I32Eqz)
	f.Op(emit.Select)
	f.Op(emit.F32DemoteF64)
	f.Free(n, z, q)
}

// wide2 replaces two floats by their remainder or power.
func (k *kernel) wide2(op ir.Op) {
	f := k.f
	x, y := f.New(emit.F64), f.New(emit.F64)
	defer f.Free(x, y)
	f.Op(emit.F64PromoteF32)
	f.Set(y)
	f.Op(emit.F64PromoteF32)
	f.Set(x)
	if op == ir.Rem { // x - trunc(x/y)*y, the sign of the dividend
		f.Get(x)
		f.Get(x)
		f.Get(y)
		f.Op(emit.F64Div)
		f.Op(emit.F64Trunc)
		f.Get(y)
		f.Op(emit.F64Mul)
		f.Op(emit.F64Sub)
		f.Op(emit.F32DemoteF64)
		return
	}
	k.pow(x, y)
	f.Op(emit.F32DemoteF64)
}

// pow pushes x^y with the special cases of C99: x^0 = 1^y = 1, negative x only to whole powers.
func (k *kernel) pow(x, y emit.Local) {
	f := k.f
	r, odd := f.New(emit.F64), f.New(emit.I32)
	defer f.Free(r, odd)
	one := func() {
		f.Get(y)
		f.F64(0)
		f.Op(emit.F64Eq)
		f.Get(x)
		f.F64(1)
		f.Op(emit.F64Eq)
		f.Op(emit.I32Or)
	}
	one()
	f.IfType(emit.F64)
	f.F64(1)
	f.Else()
	nan := func() {
		f.Get(x)
		f.Get(x)
		f.Op(emit.F64Ne)
		f.Get(y)
		f.Get(y)
		f.Op(emit.F64Ne)
		f.Op(emit.I32Or)
	}
	nan()
	f.IfType(emit.F64)
	f.F64(math.NaN())
	f.Else()
	// odd = y is an odd whole number: y/2 is not whole though y is
	f.Get(y)
	f.Op(emit.F64Trunc)
	f.Get(y)
	f.Op(emit.F64Eq)
	f.Get(y)
	f.F64(0.5)
	f.Op(emit.F64Mul)
	f.Tee(r)
	f.Op(emit.F64Trunc)
	f.Get(r)
	f.Op(emit.F64Ne)
	f.Op(emit.I32And)
	f.Set(odd)
	f.Get(x)
	f.F64(0)
	f.Op(emit.F64Eq)
	f.IfType(emit.F64)
	f.F64(0)
	f.F64(math.Inf(1))
	f.Get(y)
	f.F64(0)
	f.Op(emit.F64Gt)
	f.Op(emit.Select)
	f.Else()
	f.Get(x)
	f.Op(emit.F64Abs)
	log64(f)
	f.Get(y)
	f.Op(emit.F64Mul)
	exp64(f)
	f.End()
	f.Set(r)
	// Signs: negative x flips under odd powers and has no power that is not whole.
	f.Get(x)
	f.F64(0)
	f.Op(emit.F64Lt)
	f.IfType(emit.F64)
	f.Get(r)
	f.Op(emit.F64Neg)
	f.Get(r)
	f.Get(odd)
	f.Op(emit.Select)
	f.F64(math.NaN())
	f.Get(y)
	f.Op(emit.F64Trunc)
	f.Get(y)
	f.Op(emit.F64Eq)
	f.Op(emit.Select)
	f.Else()
	f.Get(r)
	f.End()
	f.End()
	f.End()
}
