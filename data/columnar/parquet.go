//go:build !js

package columnar

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// node is a column or a group of them, as a row has them.
type node struct {
	name     string // as JSON
	repeated bool
	def      int // from which it is there
	rep      int // of a repeated one: by which it goes on
	leaf     *column
	children []*node
	list     bool // it is its only child
	first    *column
	leaves   []*column
}

// Parquet calls each with every row of a file as a JSON object of its columns in their order, and the row's number from 1.
// Lists are lists, groups objects; bytes that are no text are null, and numbers with names (datasets' ClassLabel) these. Rows
// have MaxRow bytes at most. Errors wrap ErrFormat, or are those of each and of reading.
func Parquet(r io.ReaderAt, size int64, each func(row int, object []byte) error) error {
	f, err := readFooter(r, size)
	if err != nil {
		return err
	}
	b := &builder{elements: f.schema, names: features(f.meta["huggingface"]), r: r, held: new(int)}
	root, err := b.root()
	if err != nil {
		return err
	}
	row := 0
	for _, g := range f.groups {
		if len(g.columns) != len(b.all) {
			return damaged("a group of rows has %d columns, the schema %d", len(g.columns), len(b.all))
		}
		for i, c := range b.all {
			if c.skipped {
				continue
			}
			if err := c.begin(g.columns[i], size); err != nil {
				return err
			}
		}
		for range g.count {
			row++
			object, err := root.row(b.buf[:0])
			if err != nil {
				return fmt.Errorf("row %d: %w", row, err)
			}
			if b.buf = object; len(object) > MaxRow {
				return damaged("row %d has more than %d bytes", row, MaxRow)
			}
			if err := each(row, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// builder makes nodes of a schema.
type builder struct {
	elements []element
	names    map[string]names
	r        io.ReaderAt
	held     *int
	at       int
	all      []*column
	buf      []byte
}

func (b *builder) root() (*node, error) {
	if len(b.elements) == 0 || b.elements[0].kind != kindGroup {
		return nil, damaged("it has no schema")
	}
	b.elements[0].repetition = 0
	n, err := b.node("", nil, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	if b.at != len(b.elements) {
		return nil, damaged("its schema has columns that belong nowhere")
	}
	n.children = slices.DeleteFunc(n.children, func(c *node) bool { return len(c.leaves) == 0 })
	if len(n.children) == 0 {
		return nil, damaged("it has no columns that are text or numbers")
	}
	return n, nil
}

// node makes the node of the next element.
func (b *builder) node(path string, classes names, def, rep, depth int) (*node, error) {
	if b.at == len(b.elements) || depth > maxDepth {
		return nil, damaged("its schema ends early or is nested more than %d deep", maxDepth)
	}
	e := b.elements[b.at]
	b.at++
	if depth == 1 {
		path, classes = e.name, b.names[e.name]
	} else if depth > 1 {
		path += "." + e.name
	}
	name, err := json.Marshal(e.name)
	if err != nil {
		return nil, err
	}
	n := &node{name: string(name), repeated: e.repetition == 2}
	if e.repetition > 0 {
		def++
	}
	if n.repeated {
		rep++
	}
	n.def, n.rep = def, rep
	if e.kind != kindGroup {
		c := &column{kind: e.kind, length: e.length, text: e.text, unsigned: e.unsigned, names: classes, path: path, maxDef: def, maxRep: rep, r: b.r, held: b.held}
		c.opaque = e.decimal || e.kind == kindInt96 || e.kind == kindFixed
		c.skipped = rep == 0 && (c.opaque || depth > 1 && e.kind == kindBytes && !e.text) // in a list it is counted
		if e.kind < kindBool || e.kind > kindFixed || e.children != 0 {
			return nil, damaged("column %q is of a kind that is not known", path)
		}
		b.all = append(b.all, c)
		if !c.skipped {
			n.leaves = []*column{c}
		}
		n.leaf, n.first = c, c
		return n, nil
	}
	for range e.children {
		c, err := b.node(path, classes, def, rep, depth+1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, c)
		n.leaves = append(n.leaves, c.leaves...)
	}
	if len(n.leaves) > 0 {
		n.first = n.leaves[0]
	}
	if e.list && len(n.children) == 1 && n.children[0].repeated {
		n.list = true
		// Its items are what the repeated group has in it, if that is one column: older files leave the group out.
		if g := n.children[0]; g.leaf == nil && len(g.children) == 1 && b.wraps(g, e.name) {
			g.list = true
		}
	}
	return n, nil
}

// wraps reports whether the repeated group of a list is not itself its items.
func (b *builder) wraps(g *node, list string) bool {
	own, err := json.Marshal(list + "_tuple")
	return err == nil && g.name != `"array"` && g.name != string(own)
}

// row appends an object of all columns.
func (n *node) row(dst []byte) ([]byte, error) {
	dst, err := n.group(dst)
	if err != nil {
		return dst, err
	}
	for _, c := range n.leaves {
		if ok, err := c.peek(); err != nil {
			return dst, err
		} else if ok && c.rep != 0 {
			return dst, c.wrong(damaged("its lists do not end with the row"))
		}
	}
	return dst, nil
}

func (n *node) group(dst []byte) ([]byte, error) {
	var err error
	dst = append(dst, '{')
	for i, c := range n.children {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, c.name...), ':')
		if dst, err = c.append(dst); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// append appends what the next row has here.
func (n *node) append(dst []byte) ([]byte, error) {
	if len(n.leaves) == 0 {
		return append(dst, "null"...), nil
	}
	if ok, err := n.first.peek(); err != nil {
		return dst, err
	} else if !ok {
		return dst, n.first.wrong(damaged("it has fewer rows than the file says"))
	}
	switch {
	case n.first.def < n.def && n.repeated:
		return append(dst, "[]"...), n.drop()
	case n.first.def < n.def:
		return append(dst, "null"...), n.drop()
	case n.repeated:
		return n.items(dst)
	}
	return n.item(dst)
}

// items appends a list of all that go on with it.
func (n *node) items(dst []byte) ([]byte, error) {
	dst = append(dst, '[')
	for i := 0; ; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = n.item(dst); err != nil {
			return dst, err
		}
		if len(dst) > MaxRow {
			return dst, damaged("a row has more than %d bytes", MaxRow)
		}
		if ok, err := n.first.peek(); err != nil {
			return dst, err
		} else if !ok || n.first.rep < n.rep {
			return append(dst, ']'), nil
		}
	}
}

// item appends one value, which is there.
func (n *node) item(dst []byte) ([]byte, error) {
	switch {
	case n.leaf != nil:
		return n.leaf.take(dst)
	case n.list:
		return n.children[0].append(dst)
	}
	return n.group(dst)
}

// drop takes the entry of something that is not there from all of its columns.
func (n *node) drop() error {
	for _, c := range n.leaves {
		if ok, err := c.peek(); err != nil {
			return err
		} else if !ok {
			return c.wrong(damaged("it has fewer rows than the file says"))
		}
		c.ready = false
	}
	return nil
}
