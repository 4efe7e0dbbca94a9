package edge

import (
	"crypto/sha256"

	"github.com/starling-fl/starling/wasm"
)

// proof is what loading a program has shown of it: what it takes, whatever it is given.
type proof struct {
	batch   int     // of the task that it was loaded for
	rows    int     // examples that it takes at once
	pages   uint32  // of memory, 64 KiB each
	prepare float64 // units of work before the first step
	step    float64 // units of work of one
}

// newProof is of a program that takes so many rows of a batch at once.
func newProof(program *wasm.Program, batch, rows int) proof {
	r := program.Report()
	of := func(segments []wasm.SegmentReport) (units float64) {
		for _, s := range segments {
			units += float64(s.Cost)
			if r.DynamicLoops > 0 {
				units += float64(s.Budget)
			}
		}
		return units
	}
	return proof{batch: batch, rows: rows, pages: r.MemoryPages, prepare: of(r.Prepare), step: of(r.Segments)}
}

// bound is the most units of work that it may take in so many steps of its own.
func (p proof) bound(steps int) float64 { return p.prepare + float64(steps)*p.step }

// allowed refuses what the task's owner has not the memory for, and a round whose steps
// may take more work than its limit: each segment is bounded when the program is loaded,
// but a step may have thousands, and a round any number of steps.
func (p proof) allowed(t Task) error {
	if err := checkMemory(p.pages, t.MostMemory); err != nil || t.Work == 0 {
		return err
	}
	return checkWork(p.bound(max(t.Steps, t.MostSteps)*(p.batch/p.rows)), t.Work)
}

// mostProofs is more than a job has programs, for any rank and host.
const mostProofs = 256

// remember keeps a proof.
func (p *ProgramTrainer) remember(sum [sha256.Size]byte, of proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proofs == nil || len(p.proofs) >= mostProofs {
		p.proofs = map[[sha256.Size]byte]proof{}
	}
	p.proofs[sum] = of
}

// known refuses by what is remembered: a device that is too small for a job does not
// load its program in every round to find that out again.
func (p *ProgramTrainer) known(sum [sha256.Size]byte, t Task) error {
	p.mu.Lock()
	of, ok := p.proofs[sum]
	p.mu.Unlock()
	if !ok || of.batch != t.Batch {
		return nil
	}
	return of.allowed(t)
}
