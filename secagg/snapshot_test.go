package secagg

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// snapshot writes down everything a machine holds, unexported fields and what
// they point to included, so that a test can tell whether a refused call changed
// anything. The source of randomness is left out: drawing from it is no change.
func snapshot(machine any) string {
	var b strings.Builder
	seen := map[uintptr]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() {
				b.WriteString("nil ")
				return
			}
			if seen[v.Pointer()] {
				b.WriteString("seen ")
				return
			}
			seen[v.Pointer()] = true
			walk(v.Elem())
		case reflect.Interface:
			if v.IsNil() {
				b.WriteString("nil ")
				return
			}
			walk(v.Elem())
		case reflect.Struct:
			b.WriteString("{")
			for i := range v.NumField() {
				if v.Type().Field(i).Name == "rand" {
					continue
				}
				b.WriteString(" .")
				walk(v.Field(i))
			}
			b.WriteString("}")
		case reflect.Slice, reflect.Array:
			if v.Kind() == reflect.Slice && v.IsNil() {
				b.WriteString("nil ")
				return
			}
			if v.Type().Elem().Kind() == reflect.Uint8 {
				b.WriteByte('"')
				for i := range v.Len() {
					b.WriteByte(byte(v.Index(i).Uint()))
				}
				return
			}
			fmt.Fprintf(&b, "[%d:", v.Len())
			for i := range v.Len() {
				walk(v.Index(i))
			}
			b.WriteString("]")
		case reflect.Map:
			var items []string
			for it := v.MapRange(); it.Next(); {
				items = append(items, fmt.Sprint(it.Key(), "=", it.Value()))
			}
			slices.Sort(items)
			fmt.Fprint(&b, items)
		case reflect.Func:
			b.WriteString("func ")
		default:
			fmt.Fprint(&b, v, " ")
		}
	}
	walk(reflect.ValueOf(machine))
	return b.String()
}

// unchanged runs a call that must fail and reports its error; the machines must
// be as they were.
func unchanged(t testing.TB, what string, call func() error, machines ...any) error {
	t.Helper()
	before := make([]string, len(machines))
	for i, m := range machines {
		before[i] = snapshot(m)
	}
	err := call()
	if err == nil {
		t.Fatalf("%s: accepted", what)
	}
	for i, m := range machines {
		if snapshot(m) != before[i] {
			t.Fatalf("%s: refused (%v), but %T has changed", what, err, m)
		}
	}
	return err
}

// TestSnapshot: the tool sees a change deep inside.
func TestSnapshot(t *testing.T) {
	r := newRound(t, "snapshot", testConfig(3, 11, 12, 3), 3)
	r.key()
	d := r.devices[0]
	_, err := d.c.Share(r.shards[0].Roster())
	r.must(err)
	for _, change := range []func(){
		func() { d.c.shares[0][5] ^= 1 },
		func() { d.c.held[0] ^= 1 },
		func() { d.c.sent[TurnShare][9] ^= 1 },
		func() { d.c.agreed[1][3] ^= 1 },
		func() { d.c.maskA[0] ^= 1 },
		func() { d.c.delivered = true },
	} {
		before := snapshot(d.c)
		if snapshot(d.c) != before {
			t.Fatal("a snapshot differs from itself")
		}
		change()
		if snapshot(d.c) == before {
			t.Fatal("a change goes unseen")
		}
	}
}
