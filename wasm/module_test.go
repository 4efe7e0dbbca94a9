package wasm

import (
	"encoding/binary"
	"math"
)

// This file is a small assembler: tests write modules with it, good and hostile,
// independently of the compiler.

func code(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func leb(v int64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func u32(v int) []byte       { return appendU32(nil, uint32(v)) }
func i32c(v int) []byte      { return code(opI32Const, leb(int64(v))) }
func i64c(v int64) []byte    { return code(opI64Const, leb(v)) }
func get(l int) []byte       { return code(opLocalGet, u32(l)) }
func set(l int) []byte       { return code(opLocalSet, u32(l)) }
func tee(l int) []byte       { return code(opLocalTee, u32(l)) }
func call(f int) []byte      { return code(opCall, u32(f)) }
func f32load(at int) []byte  { return code(0x2a, 2, u32(at)) }
func f32store(at int) []byte { return code(0x38, 2, u32(at)) }

func f32c(v float32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{opF32Const}, math.Float32bits(v))
}

// tails of the three counted shapes
func upTail(l, step, limit int) []byte {
	return code(get(l), i32c(step), opI32Add, tee(l), i32c(limit), opI32LtU, opBrIf, 0)
}
func downTail(l, step int) []byte {
	return code(get(l), i32c(step), opI32Sub, tee(l), opBrIf, 0)
}
func downPosTail(l, step int) []byte {
	return code(get(l), i32c(step), opI32Sub, tee(l), i32c(0), opI32GtS, opBrIf, 0)
}

// static wraps a body and a tail into a loop whose counter starts at first.
func static(l, first int, body, tail []byte) []byte {
	return code(i32c(first), set(l), opLoop, blockEmpty, body, tail, opEnd)
}

func chargeSeq(l int, units int64) []byte {
	return code(opGlobalGet, 0, get(l), opI64ExtendU, i64c(units), opI64Mul, opI64Sub, opGlobalSet, 0,
		opGlobalGet, 0, i64c(0), opI64LtS, opIf, blockEmpty, opUnreachable, opEnd)
}

// dynamic wraps a body into a budgeted loop over local l.
func dynamic(l, step int, units int64, body []byte) []byte {
	return code(chargeSeq(l, units), opLoop, blockEmpty, body, downPosTail(l, step), opEnd)
}

// fn is a function to assemble: parameters and locals are all i32.
type fn struct {
	params, locals int
	body           []byte // without the final end
}

// mod is a module to assemble. Raw sections, by id, replace or add to what the
// fields give; a present nil leaves the section out.
type mod struct {
	manifest *Manifest
	pages    int
	noFuel   bool
	funcs    []fn
	prepare  []int // function indices of p0..
	segments []int // of s0..
	data     []byte
	raw      map[int][]byte
	extra    [][]byte // more sections, whole, at the end
}

func section(id int, payload []byte) []byte { return code(id, u32(len(payload)), payload) }

func (m *mod) assemble() []byte {
	sections := map[int][]byte{}
	types := u32(maxParams + 1)
	for n := range maxParams + 1 {
		types = code(types, 0x60, u32(n))
		for range n {
			types = append(types, 0x7f)
		}
		types = append(types, 0)
	}
	sections[sectionType] = types
	funcs, bodies := u32(len(m.funcs)), u32(len(m.funcs))
	for _, f := range m.funcs {
		funcs = code(funcs, u32(f.params))
		b := code(1, u32(f.locals), 0x7f, f.body, opEnd)
		bodies = code(bodies, u32(len(b)), b)
	}
	sections[sectionFunction], sections[sectionCode] = funcs, bodies
	sections[sectionMemory] = code(1, 1, u32(m.pages), u32(m.pages))
	exports, n := code(6, []byte("memory"), 2, 0), 1
	if !m.noFuel {
		sections[sectionGlobal] = []byte{1, 0x7e, 1, opI64Const, 0, opEnd}
		exports = code(exports, 4, []byte("fuel"), 3, 0)
		n++
	}
	add := func(prepare bool, list []int) {
		for i, f := range list {
			name := segmentExport(prepare, i)
			exports = code(exports, u32(len(name)), []byte(name), 0, u32(f))
			n++
		}
	}
	add(true, m.prepare)
	add(false, m.segments)
	sections[sectionExport] = code(u32(n), exports)
	if m.data != nil {
		sections[sectionData] = code(1, 0, opI32Const, 0, opEnd, u32(len(m.data)), m.data)
	}
	for id, b := range m.raw {
		sections[id] = b
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, id := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11} {
		if b := sections[id]; b != nil {
			out = append(out, section(id, b)...)
		}
	}
	if m.manifest != nil {
		var err error
		if out, err = m.manifest.AppendSection(out); err != nil {
			panic(err)
		}
	}
	for _, s := range m.extra {
		out = append(out, s...)
	}
	return out
}

// toy is a whole small program: w += lr * x * 2f, loss = sum of w. It has frozen
// and prepared data, a static loop of every shape and a budgeted one.
func toy() *mod {
	const x, lr, w, f, loss, arena = 16, 48, 64, 96, 128, 144
	return &mod{
		pages: 1,
		manifest: &Manifest{
			Format: Format, Name: "toy", Compiler: "test", Host: "wazero", FLOPs: 40,
			Arena:    Region{arena, 32},
			Inputs:   []Tensor{{Name: "x", DType: Float32, Shape: []int{8}, Offset: x}, {Name: "lr", DType: Float32, Shape: []int{}, Offset: lr}},
			Outputs:  []Tensor{{Name: "loss", DType: Float32, Shape: []int{}, Offset: loss}},
			State:    []Tensor{{Name: "w", DType: Float32, Shape: []int{2, 4}, Offset: w}},
			Frozen:   []Tensor{{Name: "f", DType: Float32, Shape: []int{8}, Offset: f}},
			Prepare:  []Segment{{Name: "pack"}},
			Segments: []Segment{{Name: "update", FLOPs: 32}, {Name: "loss", FLOPs: 8}},
		},
		funcs: []fn{
			{params: 1, locals: 1, body: code( // sum of n floats of w; local 1 is the address
				i32c(0), f32c(0), f32store(loss),
				dynamic(0, 1, 100, code(
					i32c(0), i32c(0), f32load(loss), get(1), f32load(w), 0x92, f32store(loss),
					get(1), i32c(4), opI32Add, set(1))))},
			{locals: 1, body: static(0, 0, code(get(0), get(0), f32load(f), f32c(2), 0x94, f32store(arena)), upTail(0, 4, 32))},
			{locals: 1, body: static(0, 32, code( // from the last element to the first
				get(0), get(0), f32load(w-4), i32c(0), f32load(lr), get(0), f32load(x-4), 0x94, get(0), f32load(arena-4), 0x94, 0x92, f32store(w-4)),
				downTail(0, 4))},
			{locals: 0, body: code(i32c(8), call(0))},
		},
		prepare:  []int{1},
		segments: []int{2, 3},
	}
}
