package secagg

import "math/bits"

// A Set is a subset of a shard of n devices as a bitmap: device i is bit i%8 of
// byte i/8. Its length is ceil(n/8) and unused bits are zero.
type Set []byte

func newSet(n int) Set { return make(Set, (n+7)/8) }

// Has reports whether roster index i is in the set.
func (s Set) Has(i int) bool {
	return i >= 0 && i/8 < len(s) && s[i/8]>>(i%8)&1 == 1
}

// Len counts the devices in the set.
func (s Set) Len() int {
	n := 0
	for _, b := range s {
		n += bits.OnesCount8(b)
	}
	return n
}

func (s Set) add(i int)        { s[i/8] |= 1 << (i % 8) }
func (s Set) clone() Set       { return append(Set(nil), s...) }
func (s Set) equal(o Set) bool { return string(s) == string(o) }

// subset reports whether every device of s is in o; the lengths must agree.
func (s Set) subset(o Set) bool {
	if len(s) != len(o) {
		return false
	}
	for i := range s {
		if s[i]&^o[i] != 0 {
			return false
		}
	}
	return true
}

// fits reports whether s is a well-formed bitmap for n devices.
func (s Set) fits(n int) bool {
	return len(s) == (n+7)/8 && (n%8 == 0 || s[len(s)-1]>>(n%8) == 0)
}
