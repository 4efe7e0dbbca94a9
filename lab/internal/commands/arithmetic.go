package commands

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/wasm"
)

// settleArithmetic gives settings without training.arithmetic the quickest, and says which;
// exact where runs of theirs below the folder were begun in it, as by earlier versions. Engines
// other than the compiled program have their own arithmetic, and keep the settings as they are.
func settleArithmetic(w io.Writer, lab *sweep.Lab, runs string, all ...*sweep.Settings) error {
	if lab.Engine != engine.Program {
		return nil
	}
	class, why := engine.Quickest(), "the quicker of the two; --set training.arithmetic=exact, or the key in a sweep file's set, is what every device runs"
	if class == job.Exact {
		why = "this processor has no fused multiply-add"
	}
	open := 0
	for _, s := range all {
		if given, named := s.Arithmetic(); given == job.Fused && !wasm.Fuses() {
			return fmt.Errorf("training.arithmetic is fused: %w; exact runs on any processor, to another result", wasm.ErrArithmetic)
		} else if named {
			continue
		}
		open++
		id, err := lab.ID(*s)
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(runs, id)); err == nil && class == job.Fused {
			class, why = job.Exact, "as the runs in this folder, which it goes on with; another --out begins anew, fused"
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if open == 0 {
		return nil
	}
	for _, s := range all {
		*s = s.WithArithmetic(class)
	}
	fmt.Fprintf(w, "arithmetic: %s, %s\n", class, why)
	return nil
}
