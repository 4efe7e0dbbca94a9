package nn

import (
	"context"
	"fmt"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// readChunk is how many tokens of a prompt are read at once; fewer are filled up.
const readChunk = 32

// Inputs of a writing program beside the caches, and its output.
const (
	writerTokens = "tokens"   // i32 [C]
	writerPlaces = "position" // i32 [C]: of each token
	writerFar    = "far"      // i32 [C]: the position's parts, see turnTables
	writerNear   = "near"
	writerLast   = "last" // i32 [1,1]: the row whose scores are wanted
	writerRows   = "rows" // f32 [C,hidden]: what the head makes scores of
)

// Writer gives what a decoder says comes next, with an adapter at a rank: a program reads
// tokens, one or readChunk at once, and keeps each layer's keys and values, so that no token
// is read twice. Low-rank products are computed beside the maps that they change, which may stay
// in NF4. The same calls give the same bits. A Writer is safe for concurrent use: one program runs at a time, and of several
// Writings those that wait take turns, a program each.
type Writer struct {
	adapted
	context int // tokens that are held at most
	held    int // places of a cache: a chunk's filling may be behind the last token
	one     *Program
	many    *Program
	heads   *Program // scores of all rows that many has read; nil until they are asked for
	backend compute.Backend

	turn chan struct{} // of a call: Go serves those that wait for a channel in their order
}

// NewWriter prepares texts of at most context tokens on a backend; nil is the Go backend.
func NewWriter(layout *model.Layout, base *model.Base, context int, be compute.Backend) (*Writer, error) {
	if layout.Method.Task.Reads() != model.ReadsNext {
		return nil, fmt.Errorf("nn: task is %s, want %s: only a base that writes on what it reads does", layout.Method.Task, model.TaskCausal)
	}
	if context < 1 || context > layout.Config.MaxTokens() {
		return nil, fmt.Errorf("nn: a text of %d tokens, want 1..%d, the positions of the base", context, layout.Config.MaxTokens())
	}
	w := &Writer{adapted: newAdapted(layout, base), context: context, held: context + readChunk, turn: make(chan struct{}, 1)}
	w.apart = true
	var err error
	if k, ok := be.(keeper); ok {
		if be, err = w.keeping(k); err != nil {
			return nil, err
		}
	}
	if w.one, err = Compile(be, "write", w.build(1)); err != nil {
		return nil, err
	}
	if w.many, err = Compile(be, "read", w.build(readChunk)); err != nil {
		return nil, err
	}
	w.backend = be
	return w, w.freeze(w.one, w.many)
}

// keeping is a backend whose programs keep what the base has in NF4, unless the adapter has a difference of it, and caches.
func (w *Writer) keeping(k keeper) (compute.Backend, error) {
	w.packed = map[string]bool{}
	for _, spec := range w.layout.Config.BaseTensors() {
		packed, err := w.base.HoldsNF4(spec.Name)
		if err != nil {
			return nil, err
		}
		w.packed[spec.Name] = packed
	}
	for _, e := range w.layout.Entries() {
		if e.Kind == model.KindDelta {
			delete(w.packed, e.Changes())
		}
	}
	becomes := []string{""} // the scores
	for l := range w.layout.Config.NumHiddenLayers {
		becomes = append(becomes, cacheName(l, "k"), cacheName(l, "v"))
	}
	return k.Keeping(w.packed, becomes), nil
}

// build is a program that reads n tokens.
func (w *Writer) build(n int) func(g *graph.Graph) ([]Param, []Output, error) {
	return func(g *graph.Graph) ([]Param, []Output, error) {
		c, held := w.layout.Config, w.held
		d := decoder{cfg: c, params: adapterParams(newParams(g), w.layout, true), scale: 1}
		in := func(name string, shape ...int) *graph.Node { return d.params.add(name, Input, dtypes.Int32, shape...) }
		tokens, places := in(writerTokens, n), in(writerPlaces, n)
		far, near := graph.Reshape(in(writerFar, n), n, 1), graph.Reshape(in(writerNear, n), n, 1)
		last := in(writerLast, 1, 1)

		size := c.KeySize()
		row := shapes.Make(dtypes.Int32, n, size)
		read := graph.LessOrEqual(graph.Iota(g, row, 0), graph.BroadcastToDims(last, n, size)) // false where a chunk is filled up
		var outputs []Output
		cached := func(name string, now *graph.Node) *graph.Node {
			old := d.params.add(name, State, dtypes.Float32, held, size)
			now = graph.Reshape(now, n, size)
			x := graph.ScatterSum(old, graph.Reshape(places, n, 1), graph.Where(read, now, graph.ZerosLike(now)), true, true) // onto zeros
			outputs = append(outputs, Output{Name: name + ".new", State: name, Node: x})
			return x
		}
		x := d.looked(tokens)
		if c.Decoder.Learned {
			x = d.placed(x, graph.Reshape(places, n, 1))
		}
		masks, turns := map[bool]*graph.Node{}, map[model.Rope]rotation{}
		for l := range c.NumHiddenLayers {
			windowed, rope := c.Decoder.Windowed(l), c.Decoder.RopeOf(l)
			if masks[windowed] == nil {
				seen := graph.Iota(g, shapes.Make(dtypes.Int32, n, held), 1)
				masks[windowed] = d.hide(seen, graph.BroadcastToDims(graph.Reshape(places, n, 1), n, held), windowed)
			}
			if turns[rope].cos == nil && !c.Decoder.Learned {
				turns[rope] = d.turnTables(g, rope, w.held).at(far, near)
			}
			x = throughout(d.stages(1, c.DecoderLayer(l), masks[windowed], turns[rope], func(x *graph.Node) *graph.Node { return x },
				func(k, v *graph.Node) (keys, values *graph.Node) {
					return graph.Reshape(cached(cacheName(l, "k"), k), 1, held, c.Decoder.KVHeads, c.Decoder.HeadSize), cached(cacheName(l, "v"), v)
				}), x)
		}
		x = d.last(x)
		outputs = append([]Output{{Name: LogitsName, Node: linear(graph.Gather(x, last), d.head(), nil)}}, outputs...)
		if n > 1 {
			outputs = append(outputs, Output{Name: writerRows, Node: x})
		}
		return d.params.list, outputs, nil
	}
}

// Context is the largest number of tokens of a text.
func (w *Writer) Context() int { return w.context }

// Writing is a text that is being read and written.
type Writing struct {
	w       *Writer
	adapter []float32
	rank    int
	length  int
	caches  map[string]compute.Buffer
}

// Begin begins a text with an adapter: a slice at the given rank (Layout.Size(rank) values),
// which must not change while it is written. The caller closes it.
func (w *Writer) Begin(adapter []float32, rank int) (*Writing, error) {
	if err := w.layout.CheckSlice(adapter, rank); err != nil {
		return nil, err
	}
	t := &Writing{w: w, adapter: adapter, rank: rank, caches: map[string]compute.Buffer{}}
	for _, p := range w.one.Params {
		if p.Role != State || !isCache(p.Name) {
			continue
		}
		b, err := w.one.Buffer(p, make([]float32, model.Elements(p.Shape)))
		if err != nil {
			t.Close()
			return nil, err
		}
		t.caches[p.Name] = b
	}
	return t, nil
}

func isCache(name string) bool { return strings.HasPrefix(name, cachePrefix) }

// Read takes tokens into the text, one or more, and returns the scores of every token to come
// next. It checks ctx between programs.
func (t *Writing) Read(ctx context.Context, tokens []int32) (scores []float32, err error) {
	if err := t.fits(tokens); err != nil {
		return nil, err
	}
	for len(tokens) > 0 {
		n := min(readChunk, len(tokens))
		if scores, err = t.step(ctx, tokens[:n], false); err != nil {
			return nil, err
		}
		tokens = tokens[n:]
	}
	return scores, nil
}

// Score is Read that gives each the scores behind each of the tokens, by its place among them. each may change them; an
// error of its ends the reading.
func (t *Writing) Score(ctx context.Context, tokens []int32, each func(i int, scores []float32) error) error {
	if err := t.fits(tokens); err != nil {
		return err
	}
	vocabulary := t.w.layout.Config.VocabSize
	for at := 0; at < len(tokens); {
		n := min(readChunk, len(tokens)-at)
		rows, err := t.step(ctx, tokens[at:at+n], true)
		if err != nil {
			return err
		}
		for i := range n {
			if err := each(at+i, rows[i*vocabulary:][:vocabulary]); err != nil {
				return err
			}
		}
		at += n
	}
	return nil
}

// fits refuses tokens that the text has no room for, or that are none.
func (t *Writing) fits(tokens []int32) error {
	w := t.w
	switch limit := int32(w.layout.Config.VocabSize); {
	case len(tokens) == 0:
		return fmt.Errorf("nn: no token is to be read")
	case t.length+len(tokens) > w.context:
		return fmt.Errorf("nn: the text has %d tokens with those that are to be read, the limit is %d", t.length+len(tokens), w.context)
	default:
		for _, id := range tokens {
			if id < 0 || id >= limit {
				return fmt.Errorf("nn: token %d, want 0..%d", id, limit-1)
			}
		}
	}
	return nil
}

// Write reads tokens and goes on, most tokens at most, each chosen by next, which may change the
// scores, and told to each, which says whether to go on. It says whether one of the base's ends
// was chosen, which is not told.
func (t *Writing) Write(ctx context.Context, read []int32, most int, next func(scores []float32) int32, each func(id int32) (on bool, err error)) (ended bool, err error) {
	for range most {
		scores, err := t.Read(ctx, read)
		if err != nil {
			return false, err
		}
		id := next(scores)
		if t.w.layout.Config.Decoder.Ends.Has(id) {
			return true, nil
		}
		if on, err := each(id); err != nil || !on {
			return false, err
		}
		read = []int32{id}
	}
	return false, nil
}

// step reads at most a chunk once it is this text's turn, and returns the scores behind its last token, or behind all.
func (t *Writing) step(ctx context.Context, tokens []int32, all bool) ([]float32, error) {
	w, p, n := t.w, t.w.many, readChunk
	if len(tokens) == 1 {
		p, n = w.one, 1
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := w.adapt(t.adapter, t.rank, w.one, w.many); err != nil {
		return nil, err
	}
	in := map[string][]int32{writerTokens: make([]int32, n), writerPlaces: make([]int32, n), writerFar: make([]int32, n), writerNear: make([]int32, n),
		writerLast: {int32(len(tokens) - 1)}}
	copy(in[writerTokens], tokens)
	step := turnStep(w.held)
	for i := range n {
		at := t.length + i
		in[writerPlaces][i], in[writerFar][i], in[writerNear][i] = int32(at), int32(at/step), int32(at%step)
	}
	given := map[string]compute.Buffer{}
	for _, param := range p.Params {
		flat, ok := in[param.Name]
		if !ok || param.Role != Input {
			continue
		}
		b, err := p.Buffer(param, flat)
		if err != nil {
			return nil, err
		}
		defer b.Finalize()
		given[param.Name] = b
	}
	for name, b := range t.caches {
		given[name] = b
	}
	out, err := w.call(p, given)
	if err != nil {
		return nil, err
	}
	for name, b := range out {
		if old, cached := t.caches[name]; cached {
			_ = old.Finalize()
			t.caches[name] = b
		}
	}
	t.length += len(tokens)
	defer out[LogitsName].Finalize()
	if rows := out[writerRows]; rows != nil {
		defer rows.Finalize()
		if all {
			return w.scores(rows, len(tokens))
		}
	}
	return Floats(out[LogitsName], w.layout.Config.VocabSize)
}

// scores are those of the first n rows that a chunk has read.
func (w *Writer) scores(rows compute.Buffer, n int) ([]float32, error) {
	c := w.layout.Config
	if w.heads == nil {
		p, err := Compile(w.backend, "scores", func(g *graph.Graph) ([]Param, []Output, error) {
			d := decoder{cfg: c, params: adapterParams(newParams(g), w.layout, true), scale: 1}
			x := d.params.add(writerRows, Input, dtypes.Float32, readChunk, c.HiddenSize)
			scores := linear(x, d.head(), nil)
			return d.params.list, []Output{{Name: LogitsName, Node: scores}}, nil
		})
		if err != nil {
			return nil, err
		}
		w.heads = p // whose weights the other programs have, too
	}
	out, err := w.call(w.heads, map[string]compute.Buffer{writerRows: rows})
	if err != nil {
		return nil, err
	}
	defer out[LogitsName].Finalize()
	all, err := Floats(out[LogitsName], readChunk*c.VocabSize)
	if err != nil {
		return nil, err
	}
	return all[:n*c.VocabSize], nil
}

// Close lets go of what is held.
func (t *Writing) Close() {
	t.w.turn <- struct{}{}
	defer func() { <-t.w.turn }()
	for _, b := range t.caches {
		_ = b.Finalize()
	}
	t.caches = nil
}
