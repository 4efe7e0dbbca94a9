package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/secagg/log"
)

func enrolKey(i int) (key [32]byte) {
	binary.BigEndian.PutUint64(key[:], uint64(i)+1)
	return key
}

func enrolled(t testing.TB, s *Store, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if added, err := s.Enrol(enrolKey(i), 0); err != nil || !added {
			t.Fatal(i, added, err)
		}
	}
}

// inLog demands that each of the first n keys can be proved to be in the log.
func inLog(t testing.TB, s *Store, n int) log.Head {
	t.Helper()
	head, err := s.LogHead()
	if err != nil {
		t.Fatal(err)
	}
	for begin := 0; begin < n; begin += log.MaxMembers {
		var keys [][32]byte
		for i := begin; i < min(n, begin+log.MaxMembers); i++ {
			keys = append(keys, enrolKey(i))
		}
		m, err := s.ProveMembers(head.Size, keys)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Check(head, keys); err != nil {
			t.Fatal(err)
		}
	}
	return head
}

func TestWhoIsEnrolledIsInTheLog(t *testing.T) {
	dir := folder(t)
	s := open(t, dir)
	if head := inLog(t, s, 0); head.Size != 0 {
		t.Fatalf("a log of nobody has %d keys", head.Size)
	}
	enrolled(t, s, 0, 9)
	old := inLog(t, s, 9)
	if added, err := s.Enrol(enrolKey(3), 0); err != nil || added {
		t.Fatal(added, err)
	}
	if head := inLog(t, s, 9); head != old {
		t.Errorf("who comes again changes the log: %v, %v", old, head)
	}
	if _, err := s.ProveMembers(old.Size, [][32]byte{enrolKey(3), enrolKey(1000)}); !errors.Is(err, ErrUnknown) {
		t.Errorf("proof of a stranger: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	enrolled(t, s, 9, 130)
	head := inLog(t, s, 130)
	proof, err := s.ProveConsistency(old.Size, head.Size)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.CheckConsistency(proof, old, head); err != nil || head.Size != 130 {
		t.Errorf("%d keys: %v", head.Size, err)
	}
	if _, err := s.ProveMembers(old.Size, [][32]byte{enrolKey(10)}); !errors.Is(err, log.ErrProof) {
		t.Errorf("proof of a key under a head before it: %v", err)
	}
	for _, change := range []string{
		`UPDATE log_leaf SET at = 0`, `DELETE FROM log_leaf`, `UPDATE log_hash SET hash = zeroblob(32)`, `DELETE FROM log_hash`,
	} {
		if _, err := s.db.Exec(change); err == nil {
			t.Errorf("%s: done", change)
		}
	}
}

// Many who come at once are written together, and each is told what is true of it.
func TestManyEnrolAtOnce(t *testing.T) {
	opt := options()
	opt.MaxIdentities = 150
	s, err := Open(folder(t), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	enrolled(t, s, 0, 50)
	if err := s.Strike(enrolKey(7), 1, "mischief", true); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	added, full := 0, 0
	for i := range 200 { // 50 are known, one of them excluded; there is room for 100
		wg.Go(func() {
			isNew, err := s.Enrol(enrolKey(i), 0)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case i == 7 && !errors.Is(err, ErrExcluded), i != 7 && i < 50 && (err != nil || isNew):
				t.Errorf("%d: %v, %v", i, isNew, err)
			case i < 50:
			case errors.Is(err, ErrFull):
				full++
			case err != nil || !isNew:
				t.Errorf("%d: %v, %v", i, isNew, err)
			default:
				added++
			}
		})
	}
	wg.Wait()
	if added != 100 || full != 50 {
		t.Errorf("%d were added and %d refused, want 100 and 50", added, full)
	}
	if head, err := s.LogHead(); err != nil || head.Size != 150 {
		t.Errorf("%d keys in the log, %v", head.Size, err)
	}
}

func TestAnOldFolderGetsALog(t *testing.T) {
	dir := folder(t)
	s := open(t, dir)
	enrolled(t, s, 0, 5)
	before := inLog(t, s, 5)
	// As a program before the log left it; and once more, where one has run in between.
	for n := 5; n < 20; n += 7 {
		if n == 5 {
			if _, err := s.db.Exec(`DROP TABLE log_leaf; DROP TABLE log_hash`); err != nil {
				t.Fatal(err)
			}
		}
		for i := n; i < n+7; i++ {
			key := enrolKey(i)
			if _, err := s.db.Exec(`INSERT INTO identity (key, at, seen) VALUES ($1, 1700000000, 0)`, key[:]); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
		head := inLog(t, s, n+7)
		proof, err := s.ProveConsistency(before.Size, head.Size)
		if err != nil {
			t.Fatal(err)
		}
		if err := log.CheckConsistency(proof, before, head); err != nil || int(head.Size) != n+7 {
			t.Errorf("%d keys: %v", head.Size, err)
		}
		before = head
	}
}

func TestABrokenLogIsNotGoneOnWith(t *testing.T) {
	for _, change := range []string{
		`DELETE FROM log_leaf WHERE leaf = 2`, `DELETE FROM log_leaf WHERE leaf = 6`, `DELETE FROM log_hash WHERE id = 3`,
		`DELETE FROM log_hash WHERE id = (SELECT max(id) FROM log_hash)`, `DELETE FROM log_leaf`, `DELETE FROM log_hash`,
	} {
		dir := folder(t)
		s := open(t, dir)
		enrolled(t, s, 0, 7)
		if _, err := s.db.Exec(strings.Join(unguarded(s.db, "log_leaf", "log_hash"), ";") + ";" + change); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if again, err := Open(dir, options()); !errors.Is(err, ErrLog) {
			t.Errorf("%s: %v, %v", change, again, err)
		}
	}
}

// Who was told that it is enrolled is in the log, wherever the process dies after that; and
// whatever of a log is there is whole.
func TestCrashWhileEnrolling(t *testing.T) {
	dir, images := folder(t), t.TempDir()
	opt := options()
	acked, armed := 0, false
	var taken []int
	opt.fault = func(string) {
		if armed {
			copyFolder(t, dir, filepath.Join(images, strconv.Itoa(len(taken))))
			taken = append(taken, acked)
		}
	}
	s, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	armed = true
	for i := range 10 {
		enrolled(t, s, i, i+1)
		acked++
	}
	armed = false
	for i, n := range taken {
		again, err := Open(filepath.Join(images, strconv.Itoa(i)), options())
		if err != nil {
			t.Fatal(err)
		}
		if head := inLog(t, again, n); head.Size > int64(n)+1 {
			t.Errorf("image %d: %d keys, %d were acknowledged", i, head.Size, n)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(taken) < 20 {
		t.Fatalf("%d images", len(taken))
	}
}

// filledLog has n keys, without identities.
func filledLog(b *testing.B, n int) *Store {
	opt := options()
	opt.MaxIdentities = 1 << 40
	s, err := Open(folder(b), opt)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	tx, err := s.db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	a, err := appendTo(tx)
	for i := 0; i < n && err == nil; i++ {
		err = a.add(log.Enrolment{Key: enrolKey(i), At: 1_700_000_000})
	}
	if err := errors.Join(err, tx.Commit()); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkLog: enrolments on a disk that is waited for, 256 at a time, in a second, in a
// log of a million keys; and the bytes of its longest proofs: of one key, of 64 together,
// of consistency with whatever was before.
func BenchmarkLog(b *testing.B) {
	const n = 1_000_000
	s := filledLog(b, n-1)
	b.Run("enrol", func(b *testing.B) {
		defer cputime.Benchmark(b)()
		next, mu := n, sync.Mutex{}
		b.SetParallelism(256)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if added, err := s.Enrol(enrolKey(i+int(b.N)<<32), 0); err != nil || !added {
					b.Error(added, err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "enrolled/s")
	})
	// The sizes below 2^20 whose proofs are longest have all bits set.
	for _, size := range []int64{1<<19 - 1, n - 1} {
		for _, keys := range []int{1, 64} {
			b.Run(fmt.Sprintf("prove/keys=%d/of=%d", keys, size), func(b *testing.B) {
				defer cputime.Benchmark(b)()
				most, i := 0, 0
				for b.Loop() {
					all := make([][32]byte, keys)
					for k := range all {
						all[k] = enrolKey(k*(int(size)/keys) + i*7919%(int(size)/keys))
					}
					m, err := s.ProveMembers(size, all)
					if err != nil {
						b.Fatal(err)
					}
					enc, _ := m.AppendBinary(nil)
					most, i = max(most, len(enc)), i+1
				}
				b.ReportMetric(float64(most), "bytes")
			})
		}
		b.Run(fmt.Sprintf("consistency/of=%d", size), func(b *testing.B) {
			most, from := 0, int64(1)
			for b.Loop() {
				proof, err := s.ProveConsistency(from, size)
				if err != nil {
					b.Fatal(err)
				}
				most, from = max(most, 32*len(proof)), 1+(from*7919)%(size-1)
			}
			b.ReportMetric(float64(most), "bytes")
		})
	}
}

// BenchmarkProveCohort: what proves of a cohort of 10,000 that it is enrolled, shard by shard
// of 64, in a log of 200,000 keys. The engine waits for all of it before a roster goes out.
func BenchmarkProveCohort(b *testing.B) {
	const n, devices, shard = 200_000, 10_000, 64
	s := filledLog(b, n)
	b.Run(fmt.Sprintf("devices=%d", devices), func(b *testing.B) {
		defer cputime.Benchmark(b)()
		for b.Loop() {
			for from := 0; from < devices; from += shard {
				var keys [][32]byte
				for i := from; i < min(from+shard, devices); i++ {
					keys = append(keys, enrolKey(i*7919%n))
				}
				if _, err := s.ProveMembers(n, keys); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
