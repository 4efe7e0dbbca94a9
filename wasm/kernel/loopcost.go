package kernel

// What a loop costs is counted in additions of one value, of which AVX-512 does some 32 a nanosecond. The figures are
// BenchmarkLoop's and those of its kernels, rounded.
const (
	costRun      = 1 << 13 // of a run: to find its buffers and constants
	costBlock    = 1200    // of a block
	costBegin    = 120     // of an operation on a block
	costRow      = 50      // of an operation on a row that stands apart from the next
	costFetchRow = 600     // of a row that is copied first
	costFetch    = 32      // of a value that is fetched alone
	costStream   = 1       // of a value's way from memory or there
	costHandOver = 1 << 15 // of a run on several goroutines: a microsecond
	costHelper   = 1 << 16 // the least that is worth another goroutine
)

// costs are those of operations that are no additions.
var costs = map[Op]int{Exp: 12, Log: 16, Tanh: 10, Erf: 10, Logistic: 18, Div: 6, Sqrt: 7, Rsqrt: 13, Max: 2, Min: 2}

// Work is what the busiest of as many goroutines as RunLoop would take of the given number has to do, in additions.
func (pl *LoopPlan) Work(cores int) int {
	workers := pl.workers(cores)
	if workers == 1 {
		return costRun + pl.work
	}
	j := loopJob{LoopPlan: pl}
	j.cut(workers)
	busiest := min(j.units, ceil(j.tasks, workers)*ceil(j.units, j.tasks))
	return costRun + costHandOver + int(float64(pl.work)*float64(busiest)/float64(j.units))
}

// workers is how many goroutines of some a loop is worth.
func (pl *LoopPlan) workers(cores int) int { return max(1, min(cores, pl.work/costHelper)) }

// cost adds up what a plan does in all.
func (pl *LoopPlan) cost() int {
	j := loopJob{LoopPlan: pl}
	j.cut(1)
	lanes := pl.rows * pl.cols
	blocks := ceil(pl.rows, j.height) * j.pieces
	sum := blocks * costBlock
	for _, in := range pl.code[onRow] {
		if pl.groups { // several rows at once
			sum += ceil(pl.rows, max(j.height, rowsAtOnce))*costBegin + pl.rows*(group+costs[in.op])
			continue
		}
		sum += pl.rows * j.pieces * (costBegin + group*max(1, costs[in.op]))
	}
	apart := func(at int) bool {
		f := &pl.places[at]
		return f.split || f.extent == alongCols && pl.groups || f.moves && f.walk.chain < pl.rows
	}
	for _, in := range pl.code[onBlock] {
		sum += blocks * costBegin
		n := lanes
		if in.extent == alongRows {
			n = max(pl.rows, blocks*group)
		}
		switch {
		case in.op == opFetch:
			f := &pl.places[in.dst]
			sum += costFetchRow * pl.rows
			if f.walk.col != 4 && f.extent == whole {
				sum += costFetch * n
			}
			continue
		case in.op == opSpread:
			n /= 2
		case in.op >= opPair && in.op < opFetch:
			n += n / 2
		}
		sum += n * max(1, costs[in.op])
		rows := apart(in.dst)
		for _, at := range in.operands() {
			rows = rows || apart(at)
		}
		if rows && pl.groups && in.extent == whole {
			sum += pl.rows * costRow
		}
	}
	for _, at := range pl.moving {
		if f := &pl.places[at]; f.extent == whole {
			sum += lanes * costStream
			if len(pl.sizes) > 1 && f.walk.chain < pl.sizes[len(pl.sizes)-1] && j.height > pl.sizes[len(pl.sizes)-1] {
				sum += pl.rows * costFetchRow // blocks are of rows that do not step alike
			}
		}
	}
	if pl.reduce != None {
		sum += lanes + pl.rows/pl.mid*costRow*max(1, costs[pl.reduce])
	}
	return sum
}
