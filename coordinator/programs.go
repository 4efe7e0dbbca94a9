package coordinator

import (
	"fmt"
	"sync"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/wasm/program"
)

// programs compiles the training step once for each rank and host, and keeps the
// result as a blob, named by its content.
type programs struct {
	cfg   Config
	t     *core.Terms
	blobs *blobs

	mu   sync.Mutex
	refs map[int][]wire.Program // by mu; by rank
}

func newPrograms(cfg Config, t *core.Terms, b *blobs) *programs {
	if cfg.Compile == nil {
		cfg.Compile = program.Step
	}
	if cfg.Hosts == nil {
		cfg.Hosts = program.Hosts
	}
	return &programs{cfg: cfg, t: t, blobs: b, refs: map[int][]wire.Program{}}
}

// at returns the rank's programs, one a host.
func (p *programs) at(rank int) ([]wire.Program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if refs, ok := p.refs[rank]; ok {
		return refs, nil
	}
	var refs []wire.Program
	for _, host := range p.cfg.Hosts {
		code, err := p.cfg.Compile(program.Spec{Job: p.t.Job, Base: p.t.Base, Rank: rank, Host: host, Compact: p.t.Compact})
		if err != nil {
			return nil, fmt.Errorf("coordinator: program of rank %d for %s: %w", rank, host, err)
		}
		refs = append(refs, wire.Program{Host: host, Blob: p.blobs.keep(monitor.PartPrograms, code)})
	}
	p.refs[rank] = refs
	return refs, nil
}
