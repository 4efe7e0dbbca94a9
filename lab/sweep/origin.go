package sweep

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-fl/starling/simulate"
)

// origin is what a run is made from besides its settings: SHA-256s, hexadecimal.
type origin struct {
	base  string
	start string // of the adapter that the settings name as their start; "" if they name none
	data  string // of the labelled file; "" of generated data
}

// are reports whether a record was made from the same.
func (o origin) are(r *Record) bool {
	return r.Base == o.base && r.Start == o.start && strings.HasPrefix(r.Data, o.data)
}

// changed says in what a record was made from something else.
func (o origin) changed(r *Record, engine string) (out []string) {
	none := func(s string) string { return cmp.Or(s, "none") }
	for _, x := range []struct{ what, was, is string }{
		{"base", fmt.Sprintf("%.12s", r.Base), fmt.Sprintf("%.12s", o.base)}, {"engine", r.Engine, engine},
		{"adapter.start", none(fmt.Sprintf("%.12s", r.Start)), none(fmt.Sprintf("%.12s", o.start))},
		{"data", fmt.Sprintf("%.12s", r.Data[:min(len(r.Data), len(o.data))]), fmt.Sprintf("%.12s", o.data)},
	} {
		if x.was != x.is {
			out = append(out, fmt.Sprintf("%s: %s in the folder, %s now", x.what, x.was, x.is))
		}
	}
	return out
}

// ID names a simulation by its settings and by what is in the files that they name, so
// that another spelling of a path is the same simulation and another file is not.
func (l *Lab) ID(s Settings) (string, error) {
	start, err := l.startHash(s)
	if err != nil {
		return "", err
	}
	if start != "" {
		s.Job = clone(s.Job)
		set(s.Job, "adapter.start", start)
	}
	if s.Data != "" {
		d, err := l.Data(s.Source())
		if err != nil {
			return "", err
		}
		s.Data, s.Test, s.Partition = d.SHA256, "", "" // whose contents are in the hash
	}
	return s.ID()
}

// adopt gives a run its folder below dir which programs that named runs by the spelling
// of their paths left under such a name: one that is done only if it was made from the
// same files.
func (l *Lab) adopt(s Settings, id, dir string) error {
	spelled, err := s.ID()
	if err != nil || spelled == id {
		return err
	}
	from, to := filepath.Join(dir, spelled), filepath.Join(dir, id)
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	r, err := readRecord(from)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it was interrupted: states tell for themselves of what they are
	case err != nil:
		return err
	default:
		if made, err := l.madeFrom(s); err != nil || r.Start != made.start || !strings.HasPrefix(r.Data, made.data) {
			return err
		}
	}
	unlock, err := lock(from)
	if err == nil {
		unlock() // Windows renames no folder of which a file is open
		err = os.Rename(from, to)
	}
	if _, there := os.Stat(to); there == nil { // by another process, if not by this one
		return nil
	}
	return fmt.Errorf("%s: %w", from, err)
}

// madeFrom is what a run of these settings is made from.
func (l *Lab) madeFrom(s Settings) (o origin, err error) {
	if l.baseSum == "" {
		sum, err := l.Base.SHA256()
		if err != nil {
			return o, err
		}
		l.baseSum = hex.EncodeToString(sum[:])
	}
	o.base = l.baseSum
	if o.start, err = l.startHash(s); err != nil {
		return o, err
	}
	d, err := l.Data(s.Source())
	if err != nil {
		return o, err
	}
	o.data = d.SHA256
	return o, nil
}

// startHash is the SHA-256 of the adapter that settings name as their start; "" where
// they name none.
func (l *Lab) startHash(s Settings) (string, error) {
	if at, ok := lookup(s.Job, "adapter.start"); (!ok || at == "") && s.start == "" {
		return "", nil
	}
	_, j, err := l.job(s)
	if err != nil {
		return "", err
	}
	base, err := l.baseFor(j)
	if err != nil {
		return "", err
	}
	a, err := l.start(j, base)
	if err != nil || a == nil {
		return "", err
	}
	sum, err := simulate.AdapterSHA256(a)
	return hex.EncodeToString(sum[:]), err
}
