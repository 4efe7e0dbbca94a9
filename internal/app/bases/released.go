package bases

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/model"
)

// Released is the checkpoint that a command names.
func Released(dir string) (*model.Checkpoint, error) {
	if dir == "" {
		return nil, usage.Errorf("--checkpoint is missing: the folder of a released adapter")
	}
	if !IsCheckpoint(dir) {
		// What demo and serve are given, and print first, is the folder above it.
		if within := filepath.Join(dir, "checkpoint"); IsCheckpoint(within) {
			return nil, named.Errorf("checkpoint %s: no %s in it; there is one in %s", dir, model.CheckpointFile, within)
		}
		return nil, named.Errorf("checkpoint %s: no %s in it: starling demo, serve and simulate write such a folder, and "+
			"starling import makes one of a base and a PEFT adapter", dir, model.CheckpointFile)
	}
	ck, err := model.ReadCheckpoint(dir)
	return ck, named.Wrap(err)
}

// Rank parses a rank: "best" is the one that validation chose, or the largest.
func Rank(ck *model.Checkpoint, text string) (int, error) {
	if text == "best" {
		if ck.BestRank > 0 {
			return ck.BestRank, nil
		}
		return ck.Method.RMax, nil
	}
	b, err := strconv.Atoi(text)
	if err != nil || b < 0 || b > ck.Method.RMax {
		return 0, usage.Errorf("--rank is %q, want best or 0 (the head alone) to %d", text, ck.Method.RMax)
	}
	return b, nil
}

// SayTask says which task a job has that names none, where the base decides it.
func SayTask(w io.Writer, named bool, b *model.Base) {
	if task := b.Config.DefaultTask(); !named && task != model.TaskClassify {
		fmt.Fprintf(w, "task: %s, the only one of a %s\n", task, b.Config.ModelType)
	}
}
