package accounts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// mostRosters is how many rounds' rosters are kept of a job.
const mostRosters = 16

// rosterFolder is where an account's folder keeps who was in a device's shards, by job.
func (a *Folder) rosterFolder(task string) string {
	return filepath.Join(a.dir, "rosters", task[:min(len(task), 32)])
}

// KeepRoster keeps the proof of a round's shard members; of each job it keeps the last ones.
func (a *Folder) KeepRoster(round uint64, task [32]byte, proof *edge.RosterProof) error {
	dir := a.rosterFolder(fmt.Sprintf("%x", task))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("rosters: %w", err)
	}
	b, err := json.Marshal(proof)
	if err != nil {
		return fmt.Errorf("rosters: %w", err)
	}
	if err := durable.Replace(filepath.Join(dir, fmt.Sprintf("%d.json", round)), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("rosters: %w", err)
	}
	rounds, err := keptRosters(dir)
	for i := 0; err == nil && i < len(rounds)-mostRosters; i++ {
		err = os.Remove(filepath.Join(dir, fmt.Sprintf("%d.json", rounds[i])))
	}
	return err
}

// keptRosters are the rounds whose rosters a folder has, the last one last.
func keptRosters(dir string) (rounds []uint64, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rosters: %w", err)
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			if n, err := strconv.ParseUint(name, 10, 64); err == nil {
				rounds = append(rounds, n)
			}
		}
	}
	slices.Sort(rounds)
	return rounds, nil
}

// RosterProof copies the roster of a round, 0: the last, of the first of the jobs that has one,
// to path.
func (a *Folder) RosterProof(jobs []edge.JobAccount, round uint64, path string) (*edge.ProvenRoster, error) {
	for _, j := range jobs {
		dir := a.rosterFolder(j.Task)
		rounds, err := keptRosters(dir)
		if err != nil {
			return nil, err
		}
		if len(rounds) == 0 || round != 0 && !slices.Contains(rounds, round) {
			continue
		}
		of := rounds[len(rounds)-1]
		if round != 0 {
			of = round
		}
		proven, b, err := ReadRosterProof(filepath.Join(dir, fmt.Sprintf("%d.json", of)))
		if err != nil {
			return nil, err
		}
		return proven, durable.Replace(path, b, 0o600)
	}
	if round != 0 {
		return nil, fmt.Errorf("no roster of round %d is kept: of each job the last %d are, where it has a log of enrolled keys", round, mostRosters)
	}
	return nil, errors.New("no roster is kept: the data has been in no shard of a job with a log of enrolled keys")
}

// ReadRosterProof reads and verifies one.
func ReadRosterProof(path string) (*edge.ProvenRoster, []byte, error) {
	f, err := named.Once(path)
	if err != nil {
		return nil, nil, fmt.Errorf("proof of a roster: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, edge.MaxRosterProof+1))
	if err != nil {
		return nil, nil, fmt.Errorf("proof of a roster: %w", err)
	}
	proof, err := edge.ParseRosterProof(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	proven, err := proof.Verify()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return proven, b, nil
}
