package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/internal/testkit/postgrestest"
)

var enrolledFlag = flag.Int("enrolled", 100_000, "identities that BenchmarkDrawing enrols")

// BenchmarkDrawing is what a round's draw asks the store, beside so many identities, of which
// one in a hundred was not seen for long and one in a thousand is excluded: who is in no draw,
// whether rounds are paused, and the round's beginning.
func BenchmarkDrawing(b *testing.B) {
	for _, over := range []string{"SQLite", "PostgreSQL"} {
		b.Run(fmt.Sprintf("%s/enrolled=%d", over, *enrolledFlag), func(b *testing.B) {
			fill := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
				INSERT INTO identity (id, key, at, seen, excluded) SELECT i, randomblob(32), 0, CASE WHEN i % 100 = 0 THEN 5 ELSE 1000 END,
				CASE WHEN i % 1000 = 1 THEN 'garbage' ELSE '' END FROM n`
			if over == "PostgreSQL" {
				var err error
				if server, err = postgrestest.Start(); errors.Is(err, postgrestest.ErrAbsent) {
					b.Skip(err)
				} else if err != nil {
					b.Fatal(err)
				}
				defer func() {
					ok(b, server.Stop())
					server = nil
				}()
				fill = `INSERT INTO identity (id, key, at, seen, excluded) SELECT i, sha256(i::text::bytea), 0, CASE WHEN i % 100 = 0 THEN 5 ELSE 1000 END,
					CASE WHEN i % 1000 = 1 THEN 'garbage' ELSE '' END FROM generate_series(1, $1::bigint) i`
			}
			opt := options()
			opt.MaxIdentities = 1 << 40
			s, err := Open(folder(b), opt)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			// Keys come in no order: what can be sorted at once is indexed afterwards.
			before := []string{`DROP INDEX identity_by_seen`, `PRAGMA cache_size = -2000000`, `PRAGMA journal_mode = OFF`}
			after := []string{seenSchema, `ANALYZE identity`, `PRAGMA journal_mode = WAL`, `PRAGMA cache_size = -2000`}
			if s.db.postgres {
				before = []string{`DROP INDEX identity_by_seen`, `ALTER TABLE identity DROP CONSTRAINT identity_key_key`}
				after = []string{`ALTER TABLE identity ADD UNIQUE (key)`, seenSchema, `VACUUM ANALYZE identity`} // the last as it does by itself in time
			}
			for _, do := range slices.Concat(before, []string{strings.ReplaceAll(fill, "$1", strconv.Itoa(*enrolledFlag))}, after) {
				if _, err := s.db.Exec(do); err != nil {
					b.Fatal(do, err)
				}
			}
			served := func() time.Duration { return 0 }
			if s.db.postgres {
				served = backend(b, s.db)
			}
			began := served()
			defer func() { b.ReportMetric(float64(served()-began)/float64(b.N), "server-cpu-ns/op") }()
			defer cputime.Benchmark(b)()
			for b.Loop() {
				out, err := s.NotDrawn(time.Unix(100, 0))
				if want := *enrolledFlag/100 + *enrolledFlag/1000; err != nil || len(out) != want {
					b.Fatalf("%d are out, %v, want %d", len(out), err, want)
				}
				if _, err := s.Paused(); err != nil {
					b.Fatal(err)
				}
				if _, err := s.BeginRound(Round{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

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

// backend tells the processor time of the one process of PostgreSQL that serves a database.
func backend(b *testing.B, db *database) func() time.Duration {
	db.SetMaxOpenConns(1)
	var pid int
	_, err := db.Exec(`SET max_parallel_workers_per_gather = 0`)
	ok(b, errors.Join(err, db.QueryRow(`SELECT pg_backend_pid()`).Scan(&pid)))
	return func() time.Duration {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		ok(b, err)
		_, stat, _ = bytes.Cut(stat, []byte(") "))
		var ticks [2]int
		for i, f := range bytes.Fields(stat)[11:13] { // utime and stime, in hundredths of a second
			ticks[i], err = strconv.Atoi(string(f))
			ok(b, err)
		}
		return time.Duration(ticks[0]+ticks[1]) * 10 * time.Millisecond
	}
}
