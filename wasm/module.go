package wasm

import "unicode/utf8"

// Section ids of the binary format (Core 2.0, section 5.5.2).
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionFunction  = 3
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
)

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global",
	"export", "start", "element", "code", "data", "data count"}

// sectionOrder gives the position that the format demands: data count stands
// before code.
var sectionOrder = [...]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 10}

type funcType struct{ params, results []byte }

type export struct {
	kind  byte // 0 function, 2 memory, 3 global
	index uint32
}

// module is a parsed program: everything the rules speak of, bodies still bytes.
type module struct {
	types    []funcType
	funcs    []uint32 // type index of each function
	pages    uint32
	memories int
	fuel     bool // the one global is declared
	exports  map[string]export
	bodies   [][]byte
	offsets  []int // of each body in the file
	manifest *Manifest
	step     *Manifest // without repeats
}

// parseModule reads the sections of a program. Sections that a program may not
// have are refused here.
func parseModule(program []byte) (*module, error) {
	r := &reader{buf: program, where: "module"}
	if string(r.bytes(4)) != "\x00asm" || string(r.bytes(4)) != "\x01\x00\x00\x00" {
		return nil, refuse("module", "no WebAssembly 1 header")
	}
	m := &module{exports: make(map[string]export)}
	last := 0
	for r.err == nil && r.left() > 0 {
		id := r.byte()
		body := r.sub(int(r.u32()))
		if r.err != nil {
			break
		}
		if id == sectionCustom {
			if err := m.custom(body); err != nil {
				return nil, err
			}
			continue
		}
		if int(id) >= len(sectionNames) {
			return nil, refuse("module", "unknown section id %d", id)
		}
		body.where = sectionNames[id] + " section"
		if sectionOrder[id] <= last {
			return nil, refuse(body.where, "out of order or twice")
		}
		last = sectionOrder[id]
		if err := m.section(id, body); err != nil {
			return nil, err
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, m.complete()
}

func (m *module) custom(r *reader) error {
	r.where = "custom section"
	name := r.name()
	if r.err != nil || name != SectionName {
		return r.err
	}
	if m.manifest != nil {
		return refuse("manifest", "section %s twice", SectionName)
	}
	var err error
	m.manifest, m.step, err = decodeManifest(r.bytes(r.left()))
	return err
}

func (m *module) section(id byte, r *reader) error {
	switch id {
	case sectionType:
		m.readTypes(r)
	case sectionFunction:
		n := r.count(maxFunctions, "functions")
		m.funcs = make([]uint32, n)
		for i := range m.funcs {
			if m.funcs[i] = r.u32(); r.err == nil && uint64(m.funcs[i]) >= uint64(len(m.types)) {
				r.fail("function %d: type %d of %d", i, m.funcs[i], len(m.types))
			}
		}
	case sectionMemory:
		m.readMemory(r)
	case sectionGlobal:
		m.readGlobal(r)
	case sectionExport:
		m.readExports(r)
	case sectionCode:
		m.readCode(r)
	case sectionData:
		m.readData(r)
	case sectionDataCount:
		r.u32()
	default: // import, table, start, element
		return refuse(r.where, "a program has none")
	}
	if r.err == nil && r.left() != 0 {
		r.fail("%d bytes left over", r.left())
	}
	return r.err
}

func (m *module) readTypes(r *reader) {
	n := r.count(maxTypes, "types")
	m.types = make([]funcType, 0, n)
	for range n {
		if form := r.byte(); r.err == nil && form != 0x60 {
			r.fail("type form %#x, only functions", form)
		}
		t := funcType{params: r.valTypes(maxParams, "parameters"), results: r.valTypes(maxResults, "results")}
		if r.err != nil {
			return
		}
		m.types = append(m.types, t)
	}
}

func (m *module) readMemory(r *reader) {
	m.memories = r.count(1, "memories")
	if m.memories == 0 {
		return
	}
	if flag := r.byte(); r.err == nil && flag != 1 {
		r.fail("memory flags %#x, want 0x01: a declared maximum, not shared, 32-bit", flag)
	}
	lo, hi := r.u32(), r.u32()
	if r.err == nil && lo != hi {
		r.fail("memory of %d to %d pages, want a fixed size", lo, hi)
	}
	m.pages = lo
}

// readGlobal accepts no global or the loop budget: (mut i64) 0.
func (m *module) readGlobal(r *reader) {
	if r.count(1, "globals") == 0 {
		return
	}
	m.fuel = true
	if got := r.bytes(5); r.err == nil && string(got) != "\x7e\x01\x42\x00\x0b" {
		r.fail("only (global (mut i64) (i64.const 0)), the loop budget, is allowed")
	}
}

func (m *module) readExports(r *reader) {
	n := r.count(2*maxSegments+2, "exports")
	for range n {
		name := r.name()
		e := export{kind: r.byte(), index: r.u32()}
		if r.err != nil {
			return
		}
		if _, twice := m.exports[name]; twice {
			r.fail("export %.40q twice", name)
			return
		}
		m.exports[name] = e
	}
}

func (m *module) readCode(r *reader) {
	n := r.count(maxFunctions, "function bodies")
	if r.err == nil && n != len(m.funcs) {
		r.fail("%d bodies for %d functions", n, len(m.funcs))
	}
	for i := range n {
		size := int(r.u32())
		if r.err == nil && size > maxBodyBytes {
			r.fail("function %d: body of %d bytes, limit %d", i, size, maxBodyBytes)
		}
		m.offsets = append(m.offsets, r.offset())
		m.bodies = append(m.bodies, r.bytes(size))
		if r.err != nil {
			return
		}
	}
}

func (m *module) readData(r *reader) {
	n := r.count(maxDataSegments, "data segments")
	for i := range n {
		if flag := r.u32(); r.err == nil && flag != 0 {
			r.fail("data segment %d: flags %d, want 0: active, memory 0", i, flag)
		}
		if op := r.byte(); r.err == nil && op != opI32Const {
			r.fail("data segment %d: offset is not an i32.const", i)
		}
		at := uint64(uint32(r.s32()))
		if end := r.byte(); r.err == nil && end != opEnd {
			r.fail("data segment %d: offset is not one constant", i)
		}
		data := r.bytes(int(r.u32()))
		if r.err == nil && at+uint64(len(data)) > uint64(m.pages)*PageSize {
			r.fail("data segment %d: ends at %d, memory at %d", i, at+uint64(len(data)), uint64(m.pages)*PageSize)
		}
		if r.err != nil {
			return
		}
	}
}

// complete checks what only the whole module shows: the manifest is there, its
// tensors are in memory, and the exports are exactly those it speaks of.
func (m *module) complete() error {
	if m.manifest == nil {
		return refuse("module", "no custom section %s", SectionName)
	}
	if m.memories != 1 {
		return refuse("module", "%d memories, want 1", m.memories)
	}
	if len(m.bodies) != len(m.funcs) {
		return refuse("module", "%d bodies for %d functions", len(m.bodies), len(m.funcs))
	}
	if err := m.manifest.checkMemory(uint64(m.pages) * PageSize); err != nil {
		return err
	}
	want := 1 + len(m.manifest.Prepare) + len(m.manifest.Segments)
	if e, ok := m.exports["memory"]; !ok || e != (export{kind: 2}) {
		return refuse("export section", `no memory under the name "memory"`)
	}
	if m.fuel {
		want++
		if e, ok := m.exports["fuel"]; !ok || e != (export{kind: 3}) {
			return refuse("export section", `the loop budget is not exported as "fuel"`)
		}
	}
	for i := range m.manifest.Prepare {
		if _, err := m.segmentIndex(true, i); err != nil {
			return err
		}
	}
	for i := range m.manifest.Segments {
		if _, err := m.segmentIndex(false, i); err != nil {
			return err
		}
	}
	if len(m.exports) != want {
		return refuse("export section", "%d exports, the manifest speaks of %d", len(m.exports), want)
	}
	return nil
}

// segmentIndex returns the function index of a segment, after checking that it
// is exported, takes the round where it is in a repeat, else nothing, and gives nothing.
func (m *module) segmentIndex(prepare bool, i int) (uint32, error) {
	name := segmentExport(prepare, i)
	e, ok := m.exports[name]
	if !ok || e.kind != 0 {
		return 0, refuse("export section", "segment %q is not exported as a function", name)
	}
	if uint64(e.index) >= uint64(len(m.funcs)) {
		return 0, refuse("export section", "segment %q: function %d of %d", name, e.index, len(m.funcs))
	}
	t := m.types[m.funcs[e.index]]
	if len(t.results) != 0 {
		return 0, refuse("export section", "segment %q has results", name)
	}
	if told := !prepare && m.manifest.repeated(i); told && string(t.params) != "\x7f" {
		return 0, refuse("export section", "segment %q, in a repeat, takes %d parameters, want an i32", name, len(t.params))
	} else if !told && len(t.params) != 0 {
		return 0, refuse("export section", "segment %q has parameters", name)
	}
	return e.index, nil
}

// valTypes reads a vector of value types, numbers and vectors only.
func (r *reader) valTypes(limit int, what string) []byte {
	types := r.bytes(r.count(limit, what))
	for _, t := range types {
		if !isValType(t) {
			r.fail("value type %#x: numbers and v128 only", t)
		}
	}
	return types
}

func isValType(t byte) bool { return t >= 0x7b && t <= 0x7f }

// name reads a length-prefixed UTF-8 string.
func (r *reader) name() string {
	b := r.bytes(int(r.u32()))
	if r.err == nil && !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
	}
	return string(b)
}
