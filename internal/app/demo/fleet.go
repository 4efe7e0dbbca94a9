package demo

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/internal/app/sim"
	"github.com/starling-fl/starling/wasm/program"
)

// fleet is a coordinator and its devices in this process, over data; it says on
// standard error what it is.
func (f Config) fleet(told io.Writer, c coordinator.Config, data *fleetdata.Data) sim.Config {
	c.Compile, c.Hosts = program.Step, []string{program.Hosts[0]}
	cfg := sim.Config{Coordinator: c, Clients: data.Clients, Faults: f.faults()}
	if f.Serve != nil {
		f.Serve(&cfg)
	}
	if f.Verbose {
		cfg.Log = slog.New(slog.NewTextHandler(told, nil))
		cfg.Coordinator.Log = cfg.Log
	}
	labels := ""
	if n := len(data.Labels); n > 0 {
		labels = fmt.Sprintf("%d labels, ", n)
	}
	fmt.Fprintf(told, "%s: %d devices, %s%d validation and %d test examples; %d of the devices will vanish in mid-round\n",
		data.Name, len(data.Clients), labels, len(data.Validation.Examples), len(data.Test.Examples), f.Vanish)
	for _, note := range data.Notes {
		fmt.Fprintln(told, "note: "+note)
	}
	if f.Reproducible {
		cfg.Seed = binary.LittleEndian.AppendUint64(make([]byte, 24), f.Seed)
		cfg.Coordinator.Seed = cfg.Seed
		fmt.Fprintln(told, "reproducible: every secret is seeded, NOT PRIVATE")
	}
	return cfg
}

// faults spreads the vanishing edges over the run: each leaves for good in the
// middle of a round, one just before its masked update, one just before it
// would reveal its shares, and so on in turn.
func (f Config) faults() map[int]sim.Fault {
	out := map[int]sim.Fault{}
	for i := range f.Vanish {
		turn := 3
		if i%2 == 1 {
			turn = 5
		}
		out[(i+1)*f.Clients/(f.Vanish+1)] = sim.Fault{
			Version: 1 + (i+1)*f.Rounds/(f.Vanish+2), Turn: turn, Kind: sim.Vanish,
		}
	}
	return out
}
