package wasm

// loopBound is what the loader knows of a loop: how often it runs, or what it
// pays from the budget.
//
// Static loop: the instructions directly before it set its counter to a constant.
// Its trip count follows from the constants of the tail.
//
// Dynamic loop: the instructions directly before it charge the budget with
// counter*charge and trap if that was too much. The tail subtracts step from the
// counter while the result is positive.
//
// In both, nothing but the tail writes the counter while the loop is open, and
// nothing but the tail jumps back: then the tail's arithmetic alone decides, and
// no wrap-around can occur (see docs/WASM.md for the argument).
type loopBound struct {
	counter int64 // local
	write   int   // instruction that writes it: the tail's tee
	branch  int   // instruction that jumps back: the tail's br_if
	trips   uint64

	dynamic bool
	step    uint64 // counts an iteration
	charge  uint64 // units a count
}

type tailKind int

const (
	tailNone    tailKind = iota
	tailUp               // counter += step, while counter < limit
	tailDown             // counter -= step, while counter != 0
	tailDownPos          // counter -= step, while counter > 0
)

type tail struct {
	kind    tailKind
	counter int64
	step    int64
	limit   int64
	write   int
}

// loopBound matches the loop that opens at k against the two shapes.
func (b *body) loopBound(k int) (loopBound, error) {
	end := int(b.ends[k])
	t := b.loopTail(k, end)
	if t.kind == tailNone {
		return loopBound{}, b.refuse(k, "the loop does not end in a counted tail")
	}
	if t.step < 1 || t.step >= maxLoopConstant {
		return loopBound{}, b.refuse(k, "loop step %d, want 1 to 2^30-1", t.step)
	}
	bound := loopBound{counter: t.counter, write: t.write, branch: end - 1}
	if b.chargeAt(k - chargeLen) {
		if local := b.code[k-chargeLen+1].arg; t.kind != tailDownPos || local != t.counter {
			return loopBound{}, b.refuse(k, "a budgeted loop must count its charged local down while it is positive")
		}
		bound.dynamic, bound.step = true, uint64(t.step)
		bound.charge = uint64(b.code[k-chargeLen+3].arg)
		return bound, nil
	}
	if k < 2 || b.code[k-1].op != opLocalSet || b.code[k-1].arg != t.counter || b.code[k-2].op != opI32Const {
		return loopBound{}, b.refuse(k, "the loop's counter is neither set to a constant nor charged directly before it")
	}
	first := b.code[k-2].arg
	if first < 0 || first >= maxLoopConstant {
		return loopBound{}, b.refuse(k, "loop counter starts at %d, want 0 to 2^30-1", first)
	}
	switch t.kind {
	case tailUp:
		if t.limit < 0 || t.limit >= maxLoopConstant {
			return loopBound{}, b.refuse(k, "loop limit %d, want 0 to 2^30-1", t.limit)
		}
		bound.trips = uint64(max(1, (t.limit-first+t.step-1)/t.step))
	case tailDown:
		if first == 0 || first%t.step != 0 {
			return loopBound{}, b.refuse(k, "counting %d down by %d never meets 0", first, t.step)
		}
		bound.trips = uint64(first / t.step)
	case tailDownPos:
		bound.trips = uint64(max(1, (first+t.step-1)/t.step))
	}
	return bound, nil
}

// loopTail matches the instructions before a loop's end.
//
//	up:      local.get i, i32.const step, i32.add, local.tee i, i32.const limit, i32.lt_s|lt_u, br_if 0
//	down:    local.get i, i32.const step, i32.sub, local.tee i, br_if 0
//	downPos: local.get i, i32.const step, i32.sub, local.tee i, i32.const 0, i32.gt_s, br_if 0
func (b *body) loopTail(loop, end int) tail {
	c := b.code
	if end-5 <= loop || c[end-1].op != opBrIf || c[end-1].arg != 0 {
		return tail{}
	}
	kind, at := tailDown, end-5
	var limit int64
	if c[end-2].op != opLocalTee {
		at = end - 7
		if at <= loop || c[end-3].op != opI32Const {
			return tail{}
		}
		limit = c[end-3].arg
		switch {
		case c[end-2].op == opI32LtS || c[end-2].op == opI32LtU:
			kind = tailUp
		case c[end-2].op == opI32GtS && limit == 0:
			kind = tailDownPos
		default:
			return tail{}
		}
	}
	want := uint16(opI32Sub)
	if kind == tailUp {
		want = opI32Add
	}
	i := c[at].arg
	if c[at].op != opLocalGet || c[at+1].op != opI32Const || c[at+2].op != want || c[at+3].op != opLocalTee || c[at+3].arg != i {
		return tail{}
	}
	return tail{kind: kind, counter: i, step: c[at+1].arg, limit: limit, write: at + 3}
}

// charge is the sequence that pays for a dynamic loop; arguments that the
// pattern leaves open are -1.
var charge = [...]struct {
	op  uint16
	arg int64
}{
	{opGlobalGet, 0}, {opLocalGet, -1}, {opI64ExtendU, 0}, {opI64Const, -1}, {opI64Mul, 0}, {opI64Sub, 0}, {opGlobalSet, 0},
	{opGlobalGet, 0}, {opI64Const, 0}, {opI64LtS, 0}, {opIf, blockEmpty}, {opUnreachable, 0}, {opEnd, 0},
}

const chargeLen = len(charge)

// chargeAt reports whether a well-formed charge starts at instruction k.
func (b *body) chargeAt(k int) bool {
	if k < 0 || k+chargeLen > len(b.code) {
		return false
	}
	for i, want := range charge {
		in := b.code[k+i]
		if in.op != want.op || want.arg >= 0 && in.arg != want.arg {
			return false
		}
	}
	units := b.code[k+3].arg
	return units >= 1 && units < maxLoopCharge
}
