package wire

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestProtocol: the name begins with the version, and changes with every field's
// place, name, type and bound in the grammar.
func TestProtocol(t *testing.T) {
	name := Protocol()
	if version, digest, ok := strings.Cut(name, "-"); !ok || version != fmt.Sprint(Version) || len(digest) != 12 {
		t.Errorf("protocol %q", name)
	}
	type inner struct{ A, B uint32 }
	type otherInner struct{ B, A uint32 }
	shapes := map[string]int{}
	for i, v := range []any{
		struct{ N uint32 }{}, struct{ N uint64 }{}, struct{ M uint32 }{}, struct{ N [4]byte }{}, struct{ N [5]byte }{}, struct{ N []byte }{},
		struct{ N []string }{}, struct{ N, M uint32 }{}, struct{ M, N uint32 }{}, struct{ N inner }{}, struct{ N otherInner }{}, struct{ N []inner }{},
		struct{ N *inner }{}, struct {
			N uint32 `cbor:",omitempty"`
		}{},
	} {
		h := sha256.New()
		shape(h, reflect.TypeOf(v), map[reflect.Type]bool{})
		sum := fmt.Sprintf("%x", h.Sum(nil))
		if before, twice := shapes[sum]; twice {
			t.Errorf("%T, number %d, has the shape of number %d", v, i, before)
		}
		shapes[sum] = i
	}
}
