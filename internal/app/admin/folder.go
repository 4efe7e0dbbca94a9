package admin

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/job"
)

// folder is a fleet whose coordinator's folder is on this machine.
type folder struct {
	*store.Fleet
	dir string
}

// stateAway is what a job is that was running when its server ended: the store, which that one
// writes, still says that it runs.
const stateAway store.State = "away"

func (f folder) Jobs() ([]server.JobLine, error) {
	all, err := f.Hosted()
	serving, asked := store.Serving(f.dir)
	out := []server.JobLine{}
	for _, j := range all {
		if j.State == store.StateRunning && !serving {
			j.State, j.Reason = stateAway, "no server runs here: starling serve goes on with it"
		}
		out = append(out, server.JobLine{Hosted: j})
	}
	return out, errors.Join(err, asked)
}

// Spending compares the fleet's ledger with those of its jobs. While a server runs, one of them may be a round
// ahead, never two.
func (f folder) Spending() (server.Ledger, error) {
	out, err := server.LedgerOf(f.Fleet)
	if err != nil {
		return out, err
	}
	all, err := f.Hosted()
	if err != nil {
		return out, err
	}
	charged := map[string][]store.Spending{}
	for _, e := range out.Entries {
		if e.Act == store.SpendCharge {
			charged[e.Job] = append(charged[e.Job], e)
		}
	}
	for _, j := range all {
		l, err := store.ReadLedger(filepath.Join(f.dir, filepath.FromSlash(j.Folder)))
		if errors.Is(err, store.ErrNoStore) && len(charged[j.Name]) == 0 {
			continue // it was never opened
		}
		if err != nil {
			return out, fmt.Errorf("job %s: %w", j.Name, err)
		}
		own := map[uint64]string{}
		for _, e := range l.Entries {
			b, err := e.Event.MarshalBinary()
			if err != nil {
				return out, fmt.Errorf("job %s: %w", j.Name, err)
			}
			own[e.Event.Round] = hex.EncodeToString(b)
		}
		for _, e := range charged[j.Name] {
			if own[e.Round] != hex.EncodeToString(e.Event) {
				return out, fmt.Errorf("%w: round %d of job %s differs between the job's ledger and the fleet's", store.ErrLedger, e.Round, j.Name)
			}
		}
	}
	return out, nil
}

// Adopt turns a folder into a server's if it is not one yet, and returns the job's path if that is
// the folder itself.
func Adopt(dir string, j job.Job) (at string, err error) {
	if err := named.Dir(dir); err != nil {
		return "", fmt.Errorf("--dir: %w", err)
	}
	alone, err := store.ReadLedger(dir)
	switch {
	case errors.Is(err, store.ErrNoStore):
	case err != nil:
		return "", err
	default:
		at = "."
	}
	shared, err := store.IsShared(dir)
	if err != nil {
		return "", err
	}
	if shared {
		f, err := store.OpenFleet(dir)
		if err != nil {
			return "", err
		}
		all, err := f.Hosted()
		for _, h := range all {
			if h.Folder == "." {
				at = ""
			}
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	if at == "." && alone.Task != j.Name {
		return "", usage.Errorf("job %q ran in %s: submit its own job file first", alone.Task, dir)
	}
	if !shared {
		s, err := store.OpenShared(dir)
		if err != nil {
			return "", err
		}
		return at, s.Close()
	}
	return at, nil
}
