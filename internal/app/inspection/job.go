package inspection

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/program"
)

// programLine is one program of a job.
type programLine struct {
	Rank   int    `json:"rank"`
	Host   string `json:"host"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	Memory uint64 `json:"memory_bytes"`    // what an instance takes, frozen weights with it
	FLOPs  uint64 `json:"flops"`           // of a step; more than with more training.memory is what is computed again
	Given  bool   `json:"given,omitempty"` // it is among those asked about
}

// JobPrograms lists the programs of a job.
type JobPrograms []programLine

// Programs makes the programs of a job file, at every rank and for every host, with no more than so much work, in
// eighths of an instruction; it fails, with all of them, unless each of the given SHA-256 is one's.
func Programs(ctx context.Context, file string, work float64, given []string) (JobPrograms, error) {
	unknown := map[string]bool{}
	for _, s := range given {
		if b, err := hex.DecodeString(s); err != nil || len(b) != sha256.Size {
			return nil, usage.Errorf("%q is not 64 hexadecimal digits", s)
		}
		unknown[s] = true
	}
	j, err := job.Load(file)
	if err != nil {
		return nil, err
	}
	b, err := bases.ForJob(j)
	if err != nil {
		return nil, err
	}
	j = j.ForBase(b.Config)
	recipe, err := program.Recipe(j)
	if err != nil {
		return nil, err
	}
	takes := 0.0
	for _, rank := range j.Ranks() {
		one, err := program.Work(j, b, rank)
		if err != nil {
			return nil, err
		}
		takes += one * float64(len(program.Hosts))
	}
	if takes > work {
		return nil, fmt.Errorf("%w: about %.2g units for all ranks, the limit is %.2g; if you want it nevertheless: --work=%.2g",
			program.ErrWork, takes, work, 1.1*takes)
	}
	var lines JobPrograms
	for _, rank := range j.Ranks() {
		for _, host := range program.Hosts {
			code, err := program.Remake(ctx, work, j.Name, j.Labels, recipe, b, rank, host)
			if err != nil {
				return nil, err
			}
			is, err := wasm.Verify(code, wasm.Limits{MemoryPages: wasm.MaxMemoryPages})
			if err != nil {
				return nil, fmt.Errorf("rank %d for %s: %w", rank, host, err)
			}
			sum := fmt.Sprintf("%x", sha256.Sum256(code))
			lines = append(lines, programLine{rank, host, len(code), sum, uint64(is.MemoryPages) * wasm.PageSize, is.Manifest.FLOPs, unknown[sum]})
		}
	}
	for _, l := range lines {
		delete(unknown, l.SHA256)
	}
	for s := range unknown {
		return lines, fmt.Errorf("%s is not a program of this job, as this version of starling compiles it", s)
	}
	return lines, nil
}

// Print writes a line for each.
func (lines JobPrograms) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		mark := ""
		if l.Given {
			mark = "verified"
		}
		fmt.Fprintf(t, "rank %d\t%s\t%d bytes\t%.1f MiB of memory\t%.3g GFLOP a step\t%s\t%s\n", l.Rank, l.Host, l.Bytes,
			float64(l.Memory)/(1<<20), float64(l.FLOPs)/1e9, l.SHA256, mark)
	}
	return t.Flush()
}
