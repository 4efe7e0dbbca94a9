package store

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/starling-fl/starling/internal/cputime"
)

// BenchmarkEnrol times one new identity beside others: the time must not grow
// with how many there are. Half of what is enrolled is known already, as devices
// that reconnect are.
func BenchmarkEnrol(b *testing.B) {
	for _, n := range []int{1000, 300_000} {
		b.Run(fmt.Sprintf("enrolled=%d", n), func(b *testing.B) {
			opt := options()
			opt.MaxIdentities = 1 << 40
			s, err := Open(folder(b), opt)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			if _, err := s.db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
				INSERT INTO identity (key, at) SELECT randomblob(32), 0 FROM n`, n); err != nil {
				b.Fatal(err)
			}
			if _, err := s.db.Exec(`PRAGMA synchronous = OFF`); err != nil { // the disk is not what is timed
				b.Fatal(err)
			}
			i := uint64(0)
			defer cputime.Benchmark(b)()
			for b.Loop() {
				var key [32]byte
				binary.BigEndian.PutUint64(key[:], i/2)
				if added, err := s.Enrol(key, 0); err != nil || added != (i%2 == 0) {
					b.Fatal(added, err)
				}
				i++
			}
		})
	}
}
