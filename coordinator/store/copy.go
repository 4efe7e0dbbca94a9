package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// ErrRestored: the folder was put back from a copy that may have forgotten releases.
var ErrRestored = errors.New("store: this folder was restored from a copy")

// Stores lists the folders, relative to dir, whose state is in files: "." of a coordinator; of a server with several
// jobs each job's, then their fleet's, whose ledger may be ahead of theirs and not behind. The error is ErrNoStore if
// there are none, ErrRequest if they are in a database.
func Stores(dir string) ([]string, error) {
	p, err := placeOf(dir)
	if err != nil {
		return nil, err
	}
	if p.server != "" {
		return nil, fmt.Errorf("%w: the state is in %s: copy it by pg_dump --schema='%s*' --file dump.sql", ErrRequest, p, p.root)
	}
	at, err := filepath.Glob(filepath.Join(dir, "jobs", "*", FileName))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	slices.Sort(at)
	at = append(at, filepath.Join(dir, FleetFolder, FileName), filepath.Join(dir, FileName))
	var folders []string
	for _, file := range at {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		folder, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		folders = append(folders, folder)
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoStore, dir)
	}
	return folders, nil
}

// Hold keeps coordinators from starting in a folder until release is called. If one runs there it says so, and holds
// nothing.
func Hold(dir string) (release func() error, running bool, err error) {
	if _, err := os.Stat(filepath.Join(dir, FleetFolder, FileName)); err == nil {
		dir = filepath.Join(dir, FleetFolder)
	}
	lock, err := lockFolder(filepath.Join(dir, "lock"))
	if errors.Is(err, ErrLocked) {
		return func() error { return nil }, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return lock.release, false, nil
}

// Copy writes the store in a folder, as it is at one moment, to a file that is not there. A coordinator may run.
func Copy(dir, file string) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	db, err := (place{dir: dir}).open(reading)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.Exec(`VACUUM INTO $1`, file); err != nil { // into a file that is empty
		return fmt.Errorf("store: copy %s: %w", filepath.Join(dir, FileName), err)
	}
	return nil
}

// MarkRestored has Open refuse the store in a folder: rounds that were released after the copy are forgotten, and going
// on would spend their budget again. Noise that later rounds would have cancelled is erased, since none will come.
func MarkRestored(dir string, copied time.Time) (err error) {
	db, err := (place{dir: dir}).open(beside + "&_pragma=secure_delete(1)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.begin()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer tx.Rollback()
	if err := setMeta(tx, "restored", copied.UTC().Format(time.RFC3339)); err != nil {
		return prefixed(err)
	}
	if _, err := tx.Exec(keptSchema); err != nil { // of an older program's store
		return prefixed(err)
	}
	if err := erase(tx, math.MaxInt64, 0); err != nil {
		return prefixed(err)
	}
	return ended(tx.Commit())
}

// checkRestored refuses a store that MarkRestored marked.
func checkRestored(q querier) error {
	var copied string
	switch err := q.QueryRow(`SELECT coalesce(max(value), '') FROM meta WHERE key = 'restored'`).Scan(&copied); {
	case err != nil:
		return err
	case copied != "":
		return fmt.Errorf("%w of %s: it does not know later releases, so their budget would be spent a second time. Export the release, and start a new job in another folder", ErrRestored, copied)
	}
	return nil
}
