package wire

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"reflect"
	"sync"
)

// Protocol names what this package speaks: Version and a digest of every message's fields, in
// order, with their types and bounds, as in "9-1f0c…". Two builds that differ in it cannot be
// trusted to read each other, even if Version was not raised; a page is built apart from the
// program that serves it, and is compared by it.
var Protocol = sync.OnceValue(func() string {
	h := sha256.New()
	seen := map[reflect.Type]bool{}
	for k := Kind(1); k < kindEnd; k++ {
		rule := flow[k]
		fmt.Fprintf(h, "%d %s %d %d ", k, rule.name, rule.from, rule.max)
		shape(h, reflect.TypeOf(rule.make()).Elem(), seen)
	}
	for _, inner := range []any{Job{}, Plan{}} { // which travel as bytes
		shape(h, reflect.TypeOf(inner), seen)
	}
	return fmt.Sprintf("%d-%x", Version, h.Sum(nil)[:6])
})

// shape writes a type's fields, and once those of the types that they hold.
func shape(h hash.Hash, t reflect.Type, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Struct:
		fmt.Fprintf(h, "%s{", t.Name())
		if !seen[t] {
			seen[t] = true
			fields(h, t, seen)
		}
		fmt.Fprint(h, "}")
	case reflect.Array, reflect.Slice, reflect.Pointer:
		if t.Kind() == reflect.Array {
			fmt.Fprintf(h, "[%d]", t.Len())
		} else {
			fmt.Fprintf(h, "%s ", t.Kind())
		}
		shape(h, t.Elem(), seen)
	default:
		fmt.Fprintf(h, "%s ", t.Kind())
	}
}

// fields writes those of a struct; an embedded one's stand in its place, as they do in a frame.
func fields(h hash.Hash, t reflect.Type, seen map[reflect.Type]bool) {
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Anonymous:
			fields(h, f.Type, seen)
		case f.IsExported():
			fmt.Fprintf(h, "%s %s ", f.Name, f.Tag.Get("cbor"))
			shape(h, f.Type, seen)
		}
	}
}
