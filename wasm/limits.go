package wasm

import "github.com/starling-fl/starling/wasm/cost"

// PageSize is WebAssembly's memory page in bytes.
const PageSize = 65536

// MaxMemoryPages is the whole address space, 4 GiB: a limit for callers that make no instance, or have limits of
// their own.
const MaxMemoryPages = 1 << 16

// Hard limits of the format, the same for everyone.
const (
	maxManifestBytes = 1 << 20 // some 8 kB for each layer of an encoder
	maxFunctions     = 12288
	maxTypes         = 1024
	maxParams        = 16
	maxResults       = 1
	maxLocals        = 1024
	maxBodyBytes     = 64 << 10
	maxFlow          = 1 << 15 // of a function: joins of control flow times locals or joins, see checkFlow
	maxModuleFlow    = 1 << 18
	maxBlockDepth    = 64
	maxCallDepth     = 16
	maxTensors       = 4096
	maxRank          = 8
	maxElements      = 1 << 28 // of one tensor: 1 GiB of floats
	maxSegments      = 8192    // exports of a step, or to prepare
	maxCalls         = 32768   // of a step with all rounds: of some 2.5 ms each, 80 s
	maxDataSegments  = 4096
	maxMove          = 1 << 32 // of what a product reaches, from round to round
	maxParts         = 16      // of a product: workers that can share it
	maxLoopConstant  = 1 << 30 // counters, steps and bounds of static loops, exclusive
	maxLoopCharge    = 1 << 20 // units charged for one count of a dynamic loop, exclusive
)

// Limits bounds what a host grants a program. A zero field means the default.
type Limits struct {
	// ModuleBytes is the largest module accepted, in bytes. Default 2 MiB.
	ModuleBytes int
	// MemoryPages is the largest memory accepted, in pages of 64 KiB.
	// Default 16384 (1 GiB).
	MemoryPages uint32
	// SegmentCost is the most that one segment may cost between two looks at the
	// context, in units of an eighth of an instruction (docs/WASM.md). Default
	// 2^30: some 40 ms of dense vector code.
	SegmentCost uint64
}

func (l Limits) withDefaults() Limits {
	if l.ModuleBytes <= 0 {
		l.ModuleBytes = 2 << 20
	}
	if l.MemoryPages == 0 {
		l.MemoryPages = 16384
	}
	l.MemoryPages = min(l.MemoryPages, MaxMemoryPages)
	if l.SegmentCost == 0 {
		l.SegmentCost = cost.Segment
	}
	if l.SegmentCost > 1<<40 {
		l.SegmentCost = 1 << 40
	}
	return l
}
