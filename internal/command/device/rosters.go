package device

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
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/durable"
	"github.com/starling-fl/starling/internal/named"
)

// mostRosters is how many rounds' rosters are kept of a job.
const mostRosters = 16

// rosterFolder is where an account's folder keeps who was in a device's shards, by job.
func (a *accounts) rosterFolder(task string) string {
	return filepath.Join(a.dir, "rosters", task[:min(len(task), 32)])
}

// keepRoster keeps what shows who was in the shard of a round, and of a job the last ones.
func (a *accounts) keepRoster(round uint64, task [32]byte, proof *edge.RosterProof) error {
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

// writeRosterProof copies the roster of a round, 0: the last, of the job that was answered
// last of those that have one.
func (a *accounts) writeRosterProof(account *edge.Account, round uint64, path string) (*edge.ProvenRoster, error) {
	for _, j := range sortedJobs(account) {
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
		proven, b, err := readRosterProof(filepath.Join(dir, fmt.Sprintf("%d.json", of)))
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

// readRosterProof reads and verifies one.
func readRosterProof(path string) (*edge.ProvenRoster, []byte, error) {
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

// printRoster says who was in a shard.
func printRoster(w io.Writer, p *edge.ProvenRoster) error {
	var b strings.Builder
	fmt.Fprintf(&b, "round %d of %q, job %.16s: proved\n%s\n", p.Round, p.Job, p.Task, &p.Peers)
	for _, d := range p.Devices {
		fmt.Fprintf(&b, "  %s  enrolled %s, key %d of the log\n", d.Identity, d.Enrolled.Format(time.DateTime), d.Leaf)
	}
	fmt.Fprintf(&b, "under this head of the log, to be compared with others':\n%s", edge.Escape(p.Head, true))
	_, err := io.WriteString(w, b.String())
	return err
}

// printLogs says what an account knows of logs of enrolled keys.
func printLogs(b *strings.Builder, logs []edge.LogAccount) {
	for _, l := range logs {
		fmt.Fprintf(b, "log of enrolled keys %.16s: %d keys, last shown %s\n", l.Key, l.Keys, l.Seen.Format(time.DateTime))
		if l.Refused != "" {
			fmt.Fprintf(b, "REFUSED: another head under the same key, which does not go on from it. Known:\n%sRefused:\n%s", edge.Escape(l.Head, true), edge.Escape(l.Refused, true))
		}
	}
}
