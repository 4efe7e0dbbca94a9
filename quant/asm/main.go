// Command asm writes the amd64 assembly of quant's Hadamard transform. Every function is bit-identical to its plain
// twin: butterflies at distance 1, 2, 4, ... in this order, each one addition and one subtraction.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	within64()
	for _, radix := range []int{2, 4, 8} {
		between(radix)
	}
	Generate()
}

// butterfly returns a + b and a - b; the second in b's register.
func butterfly(a, b VecVirtual) (sum, difference VecVirtual) {
	sum = YMM()
	VADDPS(b, a, sum)
	VSUBPS(b, a, b)
	return sum, b
}

// transform does the levels between whole registers.
func transform(v []VecVirtual) {
	for d := 1; d < len(v); d *= 2 {
		for i := range v {
			if i&d == 0 {
				v[i], v[i+d] = butterfly(v[i], v[i+d])
			}
		}
	}
}

// table is 32 bytes of constants a lane at a time.
func table(name string, lane func(i int) uint32, lanes int) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range lanes {
		DATA(4*i, U32(lane(i)))
	}
	return m
}

// within64 transforms blocks of 64 after negating values by their sign bits.
func within64() {
	const top = 1 << 31
	// Left shifts that bring bit 8k+lane of a dword to the sign position.
	shifts := table("signShift", func(i int) uint32 { return uint32(31 - i) }, 32)
	var negate [3]Mem // the upper of each pair at distance 1, 2, 4
	for k := range negate {
		negate[k] = table(fmt.Sprintf("negate%d", 1<<k), func(i int) uint32 { return uint32(i>>k&1) * top }, 8)
	}
	TEXT("hadamard64", NOSPLIT, "func(x *float32, signs *uint64, blocks int)")
	Pragma("noescape")
	Doc("hadamard64 transforms each 64 consecutive values of x (blocks of them, at", "least one), after negating those whose bit in signs is set.")
	x, signs, blocks := Load(Param("x"), GP64()), Load(Param("signs"), GP64()), Load(Param("blocks"), GP64())
	sign := YMM()
	VPCMPEQD(sign, sign, sign)
	VPSLLD(U8(31), sign, sign)
	Label("loop")
	v := make([]VecVirtual, 8)
	bits := YMM()
	for i := range v {
		if i%4 == 0 {
			VPBROADCASTD(Mem{Base: signs, Disp: i}, bits) // 32 bits, of the next four registers
		}
		v[i] = YMM()
		flip := YMM()
		VPSLLVD(shifts.Offset(32*(i%4)), bits, flip)
		VPAND(sign, flip, flip)
		VXORPS(Mem{Base: x, Disp: 32 * i}, flip, v[i])
	}
	// Distance 1, 2 and 4, within a register: x + swapped x, where the upper of each
	// pair is negated first.
	for _, r := range v {
		for k := range 3 {
			swapped := YMM()
			switch k {
			case 0:
				VPERMILPS(U8(0xB1), r, swapped)
			case 1:
				VPERMILPS(U8(0x4E), r, swapped)
			default:
				VPERM2F128(U8(0x01), r, r, swapped)
			}
			VXORPS(negate[k], r, r)
			VADDPS(swapped, r, r)
		}
	}
	transform(v)
	for i, r := range v {
		VMOVUPS(r, Mem{Base: x, Disp: 32 * i})
	}
	ADDQ(I32(256), x)
	ADDQ(I32(8), signs)
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// between does the levels at distance h, 2h, ... up to radix/2*h.
func between(radix int) {
	name := fmt.Sprintf("hadamardRadix%d", radix)
	TEXT(name, NOSPLIT, "func(x *float32, n, h int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s does the levels of the transform from distance h (a multiple of 8) to", name),
		fmt.Sprintf("%d*h on n values.", radix/2))
	x, end, h := Load(Param("x"), GP64()), Load(Param("n"), GP64()), Load(Param("h"), GP64())
	SHLQ(U8(2), end)
	ADDQ(x, end)
	SHLQ(U8(2), h) // distance in bytes
	// Multiples of the distance that addressing does not have.
	multiple := map[int]Register{1: h}
	for k := 3; k < radix; k += 2 {
		multiple[k] = GP64()
	}
	for k := 3; k < radix; k += 2 {
		switch k {
		case 3:
			LEAQ(Mem{Base: h, Index: h, Scale: 2}, multiple[k])
		case 5:
			LEAQ(Mem{Base: h, Index: h, Scale: 4}, multiple[k])
		default:
			LEAQ(Mem{Base: multiple[3], Index: h, Scale: 4}, multiple[k])
		}
	}
	at := func(i int) Mem {
		m := Mem{Base: x}
		if i > 0 {
			odd, scale := i, 1
			for odd%2 == 0 {
				odd, scale = odd/2, scale*2
			}
			m.Index, m.Scale = multiple[odd], uint8(scale)
		}
		return m
	}
	Label("outer")
	first := GP64() // end of the first part
	LEAQ(Mem{Base: x, Index: h, Scale: 1}, first)
	Label("inner")
	v := make([]VecVirtual, radix)
	for i := range v {
		v[i] = YMM()
		VMOVUPS(at(i), v[i])
	}
	transform(v)
	for i, r := range v {
		VMOVUPS(r, at(i))
	}
	ADDQ(I32(32), x)
	CMPQ(x, first)
	JLT(LabelRef("inner"))
	ADDQ(multiple[radix-1], x) // skip the parts done
	CMPQ(x, end)
	JLT(LabelRef("outer"))
	VZEROUPPER()
	RET()
}
