package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/backup"
	"github.com/starling-fl/starling/internal/app/checkup"
	"github.com/starling-fl/starling/internal/leaf/disk"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// Doctor checks a coordinator: its folder, where w names one, and its own checks if it runs.
func (w Where) Doctor(ctx context.Context) (r *checkup.Report, err error) {
	r = new(checkup.Report)
	if w.Dir != "" {
		if err := w.folder(r); err != nil {
			return nil, err
		}
	}
	d, err := w.Desk()
	switch {
	case errors.Is(err, ErrNotRunning):
		r.Add(checkup.Check{Name: "coordinator", Found: checkup.Unknown, Detail: err.Error()})
		return r, nil
	case err != nil:
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	ready, checks, err := d.Checks()
	if err != nil {
		found, next := checkup.Failed, "see whether serve runs, and its log"
		if w.Dir != "" { // where it may be that nobody has started it
			found, next = checkup.Warning, "start it: starling serve --dir "+w.Dir
		}
		r.Add(checkup.Check{Name: "coordinator", Found: found, Detail: err.Error(), Next: next})
		return r, ctx.Err()
	}
	r.Add(checkup.Check{Name: "coordinator", Found: checkup.OK, Detail: "it answers at " + d.r.base.Host})
	for _, c := range checks {
		out := checkup.Check{Name: c.Name, Found: checkup.OK, Detail: c.Detail}
		if !c.OK {
			out.Found, out.Next = checkup.Failed, remedies[c.Name]
		}
		r.Add(out)
	}
	if !ready && r.Failed == 0 {
		r.Add(checkup.Check{Name: "ready", Found: checkup.Failed, Detail: "it says that it is not, and not why"})
	}
	if s, err := d.Fleet(); err == nil && len(s.Programs) > 0 {
		var run []string
		for _, p := range s.Programs {
			run = append(run, fmt.Sprintf("%d with %s", p.Devices, p.Name))
		}
		r.Add(checkup.Check{Name: "devices", Found: checkup.OK, Detail: fmt.Sprintf("%d enrolled: %s", s.Enrolled, strings.Join(run, ", "))})
	}
	return r, ctx.Err()
}

// remedies are what to do where a coordinator's check fails, by its name.
var remedies = map[string]string{
	"engine":      "look at the log, and start serve again",
	"store":       "look at the disk, or at the database of --store",
	"disk":        "make room in --dir: a commit that does not fit ends serve",
	"clock":       "set the clock, then start serve again",
	"rounds":      "look at the log: a round did not end at its deadlines",
	"job":         "a job that is over or paused makes no rounds: starling job resume, or a new one",
	"jobs":        "starling job list says why none can make rounds",
	"certificate": "renew it: devices refuse one that has ended",
	"gateways":    "see whether starling gateway runs, and NATS",
	"nats":        "see whether NATS can be reached",
}

// oldBackup is the age from which a copy of the store is no help.
const oldBackup = 7 * 24 * time.Hour

// folder looks at what is in the folder. Its errors are of a folder that is none.
func (w Where) folder(r *checkup.Report) error {
	f, err := store.OpenFleet(w.Dir)
	if err != nil {
		return err
	}
	s, err := f.Summary()
	r.Put("store", errors.Join(err, f.Close()), remedies["store"], "it opens; %d devices are enrolled", s.Enrolled)
	const leastFree = 256 << 20
	switch free, err := disk.Free(w.Dir); {
	case err != nil:
		r.Add(checkup.Check{Name: "room", Found: checkup.Unknown, Detail: err.Error()})
	case free < leastFree:
		r.Add(checkup.Check{Name: "room", Found: checkup.Failed, Detail: terminal.Bytes(int64(free)) + " are free in --dir", Next: remedies["disk"]})
	default:
		r.Add(checkup.Check{Name: "room", Found: checkup.OK, Detail: terminal.Bytes(int64(min(free, 1<<62))) + " are free in --dir"})
	}
	r.Add(secrets(w.Dir))
	newest, err := newestCopy(w.Dir)
	switch {
	case err != nil:
		r.Add(checkup.Check{Name: "backup", Found: checkup.Unknown, Detail: err.Error()})
	case newest.IsZero():
		r.Add(checkup.Check{Name: "backup", Found: checkup.Warning, Detail: "starling backup never copied --dir",
			Next: "starling backup --dir DIR --out FILE: a store that is lost takes the privacy ledger along"})
	case time.Since(newest) > oldBackup:
		r.Add(checkup.Check{Name: "backup", Found: checkup.Warning, Detail: "the newest copy is of " + newest.Format(time.DateOnly), Next: "make one: starling backup --dir DIR --out FILE"})
	default:
		r.Add(checkup.Check{Name: "backup", Found: checkup.OK, Detail: "the newest copy is of " + newest.Format(time.DateTime)})
	}
	return nil
}

// secrets looks at whether others on this machine can read the store, which holds keys.
func secrets(dir string) checkup.Check {
	for _, name := range []string{"starling.db", "tls.pem"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return checkup.Check{Name: "secrets", Found: checkup.Unknown, Detail: err.Error()}
		}
		if mode := info.Mode().Perm(); mode&0o004 != 0 && os.PathSeparator == '/' {
			return checkup.Check{Name: "secrets", Found: checkup.Warning, Detail: fmt.Sprintf("everybody on this machine can read %s, which holds keys", name), Next: "chmod o-r " + name}
		}
	}
	return checkup.Check{Name: "secrets", Found: checkup.OK, Detail: "only those whom the folder is for can read its keys"}
}

// newestCopy is when starling backup copied the folder last, or the newest file in it was written that is called as a copy
// of the store; zero if there is none.
func newestCopy(dir string) (newest time.Time, err error) {
	for _, pattern := range []string{backup.LastName, "*.bak", "copy*.db", "*.backup"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return newest, err
		}
		for _, name := range names {
			if info, err := os.Stat(name); err == nil && info.ModTime().After(newest) {
				newest = info.ModTime()
			}
		}
	}
	return newest, nil
}
