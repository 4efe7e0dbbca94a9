package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// secret is the noise of a release, which nothing else in the file has.
func secret(version uint64) []byte {
	sum := sha256.Sum256([]byte{byte(version)})
	return bytes.Repeat(sum[:], 300)
}

// leaves is what a round leaves for later ones.
func leaves(version uint64, noises, cohorts int) *Kept {
	return &Kept{Cohort: [][32]byte{{1, byte(version)}, {2, byte(version)}}, Noise: secret(version), Noises: noises, Cohorts: cohorts}
}

// keeps checks that the cohorts of so many last releases are there, and the noise of so many.
func keeps(t *testing.T, s *Store, version uint64, noises, cohorts int) {
	t.Helper()
	kept, err := s.Kept()
	if err != nil || len(kept) != min(cohorts, int(version)) {
		t.Errorf("version %d: %d kept, %v", version, len(kept), err)
	}
	for i, k := range kept {
		want := *leaves(version-uint64(i), 0, 0)
		if i >= noises {
			want.Noise = nil
		}
		if k.Version != version-uint64(i) || len(k.Cohort) != 2 || k.Cohort[1] != want.Cohort[1] || !bytes.Equal(k.Noise, want.Noise) {
			t.Errorf("version %d: release %d is kept with %d devices and %d bytes", version, k.Version, len(k.Cohort), len(k.Noise))
		}
	}
}

// commitKept is commit with what the round leaves.
func commitKept(t *testing.T, s *Store, version uint64, k *Kept) error {
	t.Helper()
	id := begin(t, s, version-1)
	if err := s.PersistIntent(event(id, dp.KindRelease)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Commit(event(id, dp.KindRelease), note(id), Checkpoint{Version: version, Round: id, Adapter: []byte{1}, Optimizer: []byte("o"), Kept: k})
	return err
}

// Noise that later rounds need no more is in the file no more, at the end of a block at once; what is
// kept survives a restart.
func TestKeptNoiseIsErased(t *testing.T) {
	dir := folder(t)
	s := open(t, dir)
	for version := uint64(1); version <= 6; version++ {
		if err := commitKept(t, s, version, leaves(version, 2, 4)); err != nil {
			t.Fatal(err)
		}
		keeps(t, s, version, 2, 4)
	}
	inFile := func(versions ...uint64) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(filepath.Join(dir, FileName))
		if errors.Is(err, fs.ErrNotExist) { // a database, whose old rows are its server's to remove
			file, err = nil, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		for version := uint64(1); version <= 7 && file != nil; version++ {
			want := false
			for _, v := range versions {
				want = want || v == version
			}
			if bytes.Contains(file, secret(version)[:64]) != want {
				t.Errorf("the noise of release %d is in the file: %v", version, !want)
			}
		}
		s = open(t, dir)
	}
	inFile(5, 6)
	keeps(t, s, 6, 2, 4)
	if err := commitKept(t, s, 7, leaves(7, 0, 4)); err != nil {
		t.Fatal(err)
	}
	inFile()
	keeps(t, s, 7, 0, 4)
}

// A row that was changed, or is another release's, is refused: noise made from it would hide nothing.
func TestKeptNoiseIsDamaged(t *testing.T) {
	for change, of := range map[string]string{
		`UPDATE kept SET noise = cohort WHERE version = 2`:                                       "release 2 is damaged",
		`UPDATE kept SET noise = NULL WHERE version = 1`:                                         "release 1 is damaged",
		`UPDATE kept SET cohort = digest WHERE version = 1`:                                      "release 1 is damaged",
		`UPDATE kept SET digest = (SELECT digest FROM kept WHERE version = 2) WHERE version = 1`: "release 1 is damaged",
		`CREATE TABLE other AS SELECT * FROM kept; DELETE FROM kept;
			INSERT INTO kept SELECT 3 - version, cohort, noise, digest FROM other`: "is damaged",
	} {
		s := open(t, folder(t))
		for version := uint64(1); version <= 2; version++ {
			if err := commitKept(t, s, version, leaves(version, 2, 4)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.db.Exec(change); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Kept(); err == nil || !strings.Contains(err.Error(), of) {
			t.Errorf("%s: %v", change, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
