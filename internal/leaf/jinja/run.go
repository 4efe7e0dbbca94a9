package jinja

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	body      []node
	generates bool
}

// Parse reads a template.
func Parse(src string) (*Template, error) {
	if len(src) > maxSource {
		return nil, fmt.Errorf("%w: a template of %d bytes, the limit is %d", ErrLimit, len(src), maxSource)
	}
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body, _, err := p.until()
	if err != nil {
		return nil, err
	}
	return &Template{body, p.generates}, nil
}

// Limits of a run; 0 and what is more than the most is the most.
type Limits struct {
	Steps int
	Bytes int // that the run reads and makes: strings, lists and keys, its output with them
}

func (l Limits) bounded() Limits {
	if l.Steps <= 0 || l.Steps > maxSteps {
		l.Steps = maxSteps
	}
	if l.Bytes <= 0 || l.Bytes > maxBytes {
		l.Bytes = maxBytes
	}
	return l
}

// Generates reports whether the template marks what an assistant says, with generation blocks.
func (t *Template) Generates() bool { return t.generates }

// Run writes the template with the names that vars has: nil, bools, int64s, float64s, strings,
// what List and FromJSON make, and Dicts of these. now is what strftime_now tells. The end of ctx
// ends the run with its cause.
func (t *Template) Run(ctx context.Context, vars map[string]any, now time.Time, most Limits) (string, error) {
	text, _, err := t.Spans(ctx, vars, now, most)
	return text, err
}

// Spans is Run, and tells the bytes of the text that generation blocks wrote: from and to of each, in order.
func (t *Template) Spans(ctx context.Context, vars map[string]any, now time.Time, most Limits) (text string, spans [][2]int, err error) {
	most = most.bounded()
	r := &run{ctx: ctx, filters: filters, now: now, most: most, left: most.Steps, room: most.Bytes, env: &env{vars: map[string]value{}}}
	for name, f := range globals {
		r.env.vars[name] = f
	}
	for name, v := range vars {
		r.env.vars[name] = v
	}
	r.env = &env{vars: map[string]value{}, up: r.env}
	var out strings.Builder
	r.out, r.top = &out, &out
	if _, err := r.body(t.body); err != nil {
		return "", nil, err
	}
	return out.String(), r.spans, nil
}

// env are names and what they stand for, within those around it.
type env struct {
	vars map[string]value
	up   *env
}

// name is what a name stands for. Each four levels that are searched count as a step.
func (r *run) name(name string) (value, error) {
	level := 0
	for e := r.env; e != nil; e = e.up {
		if level++; level%4 == 0 {
			if err := r.step(); err != nil {
				return nil, err
			}
		}
		if v, ok := e.vars[name]; ok {
			return v, nil
		}
	}
	return undefined{name}, nil
}

// run is one run of a template.
type run struct {
	ctx     context.Context
	filters map[string]filter
	now     time.Time
	env     *env
	out     *strings.Builder
	top     *strings.Builder // what the whole template writes
	spans   [][2]int         // of top
	most    Limits
	left    int // steps
	room    int // bytes
	quiet   int // bytes and steps since ctx was asked
	depth   int // of calls
	line    int
}

// What a body ended with, beside its end.
type jump uint8

const (
	onward jump = iota
	broken
	continued
)

func (r *run) fail(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrRun, r.line, fmt.Sprintf(format, args...))
}

func (r *run) beyond(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrLimit, r.line, fmt.Sprintf(format, args...))
}

func (r *run) step() error {
	if r.left--; r.left < 0 {
		return r.beyond("more than %d steps", r.most.Steps)
	}
	return r.alive(64)
}

// alive ends a run with its context, which is asked about each 64 KiB or 1,024 steps.
func (r *run) alive(n int) error {
	if r.quiet += n; r.quiet < 64<<10 {
		return nil
	}
	r.quiet = 0
	if r.ctx.Err() != nil {
		return fmt.Errorf("%w: line %d: %w", ErrRun, r.line, context.Cause(r.ctx))
	}
	return nil
}

// charge counts bytes before they are read or made.
func (r *run) charge(n int) error {
	if n < 0 || n > r.room {
		return r.beyond("more than %d bytes", r.most.Bytes)
	}
	r.room -= n
	return r.alive(n)
}

// touch is charge for a value that is hashed, compared or searched: a text by its bytes, a list or
// mapping by its items.
func (r *run) touch(v value) error {
	switch v := v.(type) {
	case string:
		return r.charge(len(v))
	case *list:
		return r.charge(len(v.items))
	case *Dict:
		return r.charge(len(v.keys))
	}
	return nil
}

// lists counts a list's items before it is made.
func (r *run) lists(n int) error {
	if n > r.room/16 {
		return r.beyond("more than %d bytes", r.most.Bytes)
	}
	return r.charge(16 * n)
}

func (r *run) write(s string) error {
	if err := r.charge(len(s)); err != nil {
		return err
	}
	r.out.WriteString(s)
	return nil
}

// within runs f with names of its own.
func (r *run) within(e *env, f func() error) error {
	if r.depth++; r.depth > maxDepth {
		return r.beyond("calls and loops nest deeper than %d", maxDepth)
	}
	was := r.env
	r.env = e
	err := f()
	r.env = was
	r.depth--
	return err
}

// captured is what a body writes.
func (r *run) captured(body []node) (string, error) {
	was := r.out
	var out strings.Builder
	r.out = &out
	_, err := r.body(body)
	r.out = was
	return out.String(), err
}

func (r *run) body(body []node) (jump, error) {
	for i := range body {
		if j, err := r.statement(&body[i]); j != onward || err != nil {
			return j, err
		}
	}
	return onward, nil
}

func (r *run) statement(n *node) (jump, error) {
	r.line = n.line
	if err := r.step(); err != nil {
		return onward, err
	}
	switch n.op {
	case opText:
		return onward, r.write(n.text)
	case opPrint:
		v, err := r.value(&n.kids[0])
		if err != nil {
			return onward, err
		}
		s, err := r.text(v)
		if err != nil {
			return onward, err
		}
		return onward, r.write(s)
	case opIf:
		v, err := r.value(&n.kids[0])
		if err != nil {
			return onward, err
		}
		if truth(v) {
			return r.body(n.body)
		}
		return r.body(n.else_)
	case opFor:
		return r.loop(n)
	case opSet:
		return onward, r.set(n)
	case opMacro:
		r.env.vars[n.text] = r.macro(n)
	case opBreak:
		return broken, nil
	case opContinue:
		return continued, nil
	case opGeneration:
		return onward, r.generation(n)
	case opWith:
		return r.with(n)
	}
	return onward, nil
}

// generation writes what an assistant says, and notes where.
func (r *run) generation(n *node) error {
	var text string
	e := &env{vars: map[string]value{}, up: r.env}
	err := r.within(e, func() (err error) { text, err = r.captured(n.body); return err })
	if err != nil {
		return err
	}
	from := r.top.Len() // as transformers counts, within a macro, too
	r.spans = append(r.spans, [2]int{from, from + len(text)})
	return r.write(text)
}

func (r *run) with(n *node) (j jump, err error) {
	e := &env{vars: map[string]value{}, up: r.env}
	for i, name := range n.names {
		if e.vars[name], err = r.value(&n.kids[i]); err != nil {
			return onward, err
		}
	}
	err = r.within(e, func() (err error) { j, err = r.body(n.body); return err })
	return j, err
}

func (r *run) set(n *node) error {
	v, err := r.value(&n.kids[1])
	if err != nil {
		return err
	}
	target := &n.kids[0]
	if target.op == opList {
		items, err := r.items(v)
		if err != nil {
			return err
		}
		if len(items) != len(target.kids) {
			return r.fail("%d values are set to %d names", len(items), len(target.kids))
		}
		for i, k := range target.kids {
			r.env.vars[k.text] = items[i]
		}
		return nil
	}
	if target.op == opName {
		r.env.vars[target.text] = v
		return nil
	}
	of, err := r.value(&target.kids[0])
	if err != nil {
		return err
	}
	s, ok := of.(*space)
	if !ok {
		return r.fail("%s has no attributes that are set: a namespace has", kindOf(of))
	}
	s.vars[target.text] = v
	return nil
}

// bind gives names to a loop's item.
func (r *run) bind(e *env, names []string, item value) error {
	if len(names) == 1 {
		e.vars[names[0]] = item
		return nil
	}
	parts, ok := item.(*list)
	if !ok || len(parts.items) != len(names) {
		return r.fail("a loop has %d names for %s", len(names), kindOf(item))
	}
	for i, name := range names {
		e.vars[name] = parts.items[i]
	}
	return nil
}

func (r *run) loop(n *node) (jump, error) {
	over, err := r.value(&n.kids[0])
	if err != nil {
		return onward, err
	}
	items, err := r.items(over)
	if err != nil {
		return onward, err
	}
	if len(n.kids) > 1 {
		if items, err = r.chosen(n, items); err != nil {
			return onward, err
		}
	}
	if len(items) == 0 {
		return r.body(n.else_)
	}
	for i, item := range items {
		if err := r.step(); err != nil {
			return onward, err
		}
		e := &env{vars: map[string]value{"loop": loop{items, i}}, up: r.env}
		if err := r.bind(e, n.names, item); err != nil {
			return onward, err
		}
		var j jump
		if err := r.within(e, func() (err error) { j, err = r.body(n.body); return err }); err != nil {
			return onward, err
		}
		if j == broken {
			break
		}
	}
	return onward, nil
}

// chosen are the items that a loop's condition leaves.
func (r *run) chosen(n *node, items []value) (kept []value, err error) {
	for _, item := range items {
		if err := r.step(); err != nil {
			return nil, err
		}
		e := &env{vars: map[string]value{}, up: r.env}
		if err := r.bind(e, n.names, item); err != nil {
			return nil, err
		}
		var v value
		if err := r.within(e, func() (err error) { v, err = r.value(&n.kids[1]); return err }); err != nil {
			return nil, err
		}
		if truth(v) {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

// attribute is what a loop says of itself.
func (l loop) attribute(name string) value {
	at := func(i int) value {
		if i < 0 || i >= len(l.items) {
			return undefined{"the loop's item"}
		}
		return l.items[i]
	}
	i, n := int64(l.i), int64(len(l.items))
	switch name {
	case "index":
		return i + 1
	case "index0":
		return i
	case "revindex":
		return n - i
	case "revindex0":
		return n - i - 1
	case "first":
		return i == 0
	case "last":
		return i == n-1
	case "length":
		return n
	case "depth":
		return int64(1) // of a loop that does not call itself
	case "depth0":
		return int64(0)
	case "cycle":
		return function(func(r *run, a given) (value, error) {
			if len(a.list) == 0 {
				return nil, r.fail("a cycle of nothing")
			}
			return a.list[l.i%len(a.list)], nil
		})
	case "previtem":
		return at(l.i - 1)
	case "nextitem":
		return at(l.i + 1)
	}
	return undefined{name}
}

// macro is a function of a template's own.
func (r *run) macro(n *node) function {
	defined := r.env
	return func(r *run, a given) (value, error) {
		e := &env{vars: map[string]value{}, up: defined}
		if len(a.list) > len(n.names) {
			return nil, r.fail("%s takes %d arguments, not %d", n.text, len(n.names), len(a.list))
		}
		used := 0
		for i, name := range n.names {
			v, named := a.named[name]
			switch {
			case i < len(a.list):
				v = a.list[i]
			case named:
				used++
			case n.kids[i].op == opNone:
				v = undefined{name}
			default:
				var err error
				if err = r.within(e, func() (err error) { v, err = r.value(&n.kids[i]); return err }); err != nil {
					return nil, err
				}
			}
			e.vars[name] = v
		}
		if caller, called := a.named["caller"]; called && !slices.Contains(n.names, "caller") {
			e.vars["caller"] = caller
			used++
		}
		if used != len(a.named) {
			return nil, r.fail("%s takes the arguments %q", n.text, n.names)
		}
		var s string
		err := r.within(e, func() (err error) { s, err = r.captured(n.body); return err })
		return s, err
	}
}

// items are what a value is gone over by.
func (r *run) items(v value) ([]value, error) {
	switch v := v.(type) {
	case *list:
		return v.items, nil
	case *Dict:
		return v.keys, nil
	case undefined:
		return nil, nil
	case string:
		if err := r.lists(2 * len(v)); err != nil {
			return nil, err
		}
		out := make([]value, 0, utf8.RuneCountInString(v))
		for _, c := range v {
			out = append(out, string(c))
		}
		return out, nil
	}
	return nil, r.fail("%s is not gone over", kindOf(v))
}

// whole is an index that a value is.
func (r *run) whole(v value, what string) (int, error) {
	if _, n, isWhole, ok := number(v); ok && isWhole && n >= math.MinInt32 && n <= math.MaxInt32 {
		return int(n), nil
	}
	return 0, r.fail("%s is %s, want a whole number", what, kindOf(v))
}
