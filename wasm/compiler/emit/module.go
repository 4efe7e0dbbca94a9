// Package emit writes WebAssembly modules in the binary format of the core specification 2.0 (sections of chapter
// 5.5, LEB128 of 5.2.2, the SIMD opcodes of 5.4.8). It knows only what the compiler needs: one memory of fixed size,
// functions, exports, data segments and custom sections; no imports, tables or globals. Of relaxed SIMD it
// has f32x4.relaxed_madd alone, which only fused programs may contain: results of the rest may differ from host to host.
//
//	var m emit.Module
//	f := m.NewFunc(emit.I32)
//	m.Export("s0", f)
//	program := m.Bytes()
//
// It trusts its caller: it does not validate what it is told to write. The loader's verifier does.
package emit

// ValType is a WebAssembly value type as it is encoded.
type ValType byte

// The value types.
const (
	I32  ValType = 0x7f
	I64  ValType = 0x7e
	F32  ValType = 0x7d
	F64  ValType = 0x7c
	V128 ValType = 0x7b
)

// Sections of a module, in the order in which they are written.
const (
	sectionType     = 1
	sectionFunction = 3
	sectionMemory   = 5
	sectionExport   = 7
	sectionCode     = 10
	sectionData     = 11
)

// Module collects the parts of one module. The zero value is an empty module.
type Module struct {
	types   []string // encoded function types
	typeOf  map[string]uint32
	funcs   []*Func
	known   map[string]*Func
	exports []export
	data    []segment
	pages   uint32
}

type export struct {
	name string
	kind byte
	idx  uint32
}

type segment struct {
	offset uint32
	bytes  []byte
}

// Pages sets the size of the only memory, in pages of 64 KiB; it is exported as "memory" and cannot grow.
func (m *Module) Pages(n uint32) { m.pages = n }

// Data adds a data segment that is at offset when the module starts. The bytes are not copied.
func (m *Module) Data(offset uint32, b []byte) {
	if len(b) > 0 {
		m.data = append(m.data, segment{offset, b})
	}
}

// NewFunc starts a function without results. It belongs to the module once it is given to Adopt.
func (m *Module) NewFunc(params ...ValType) *Func {
	f := &Func{typ: m.funcType(params), nparams: uint32(len(params)), spent: make([]arm, 1)}
	f.locals = append(f.locals, params...)
	return f
}

// Adopt adds a finished function, or returns an earlier one that does the same. Its index is its place in the order
// of adoption, so that a function calls only earlier ones.
func (m *Module) Adopt(f *Func) *Func {
	key := f.Key()
	if g, ok := m.known[key]; ok {
		return g
	}
	if m.known == nil {
		m.known = map[string]*Func{}
	}
	m.known[key] = f
	f.Index = uint32(len(m.funcs))
	m.funcs = append(m.funcs, f)
	return f
}

// Export exports f under a name.
func (m *Module) Export(name string, f *Func) {
	m.exports = append(m.exports, export{name, 0, f.Index})
}

func (m *Module) funcType(params []ValType) uint32 {
	b := []byte{0x60}
	b = AppendUint(b, uint64(len(params)))
	for _, p := range params {
		b = append(b, byte(p))
	}
	b = append(b, 0)
	if i, ok := m.typeOf[string(b)]; ok {
		return i
	}
	if m.typeOf == nil {
		m.typeOf = map[string]uint32{}
	}
	i := uint32(len(m.types))
	m.typeOf[string(b)] = i
	m.types = append(m.types, string(b))
	return i
}

// Bytes encodes the module. Custom sections may be appended to it as they are.
func (m *Module) Bytes() []byte {
	out := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	sec := func(id byte, body []byte) {
		out = append(out, id)
		out = AppendUint(out, uint64(len(body)))
		out = append(out, body...)
	}
	b := AppendUint(nil, uint64(len(m.types)))
	for _, t := range m.types {
		b = append(b, t...)
	}
	sec(sectionType, b)

	b = AppendUint(nil, uint64(len(m.funcs)))
	for _, f := range m.funcs {
		b = AppendUint(b, uint64(f.typ))
	}
	sec(sectionFunction, b)

	b = []byte{1, 0x01} // one memory, with a limit
	b = AppendUint(b, uint64(m.pages))
	b = AppendUint(b, uint64(m.pages))
	sec(sectionMemory, b)

	b = AppendUint(nil, uint64(len(m.exports)+1))
	b = appendName(b, "memory")
	b = append(b, 2, 0)
	for _, e := range m.exports {
		b = appendName(b, e.name)
		b = append(b, e.kind)
		b = AppendUint(b, uint64(e.idx))
	}
	sec(sectionExport, b)

	b = AppendUint(nil, uint64(len(m.funcs)))
	for _, f := range m.funcs {
		body := f.encode()
		b = AppendUint(b, uint64(len(body)))
		b = append(b, body...)
	}
	sec(sectionCode, b)

	if len(m.data) > 0 {
		b = AppendUint(nil, uint64(len(m.data)))
		for _, d := range m.data {
			b = append(b, 0, 0x41)
			b = AppendInt(b, int64(int32(d.offset)))
			b = append(b, 0x0b)
			b = AppendUint(b, uint64(len(d.bytes)))
			b = append(b, d.bytes...)
		}
		sec(sectionData, b)
	}
	return out
}

func appendName(b []byte, s string) []byte {
	b = AppendUint(b, uint64(len(s)))
	return append(b, s...)
}

// AppendUint appends v as unsigned LEB128.
func AppendUint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendInt appends v as signed LEB128.
func AppendInt(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
