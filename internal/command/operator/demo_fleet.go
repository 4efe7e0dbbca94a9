package operator

import (
	"encoding/binary"
	"fmt"
	"log/slog"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/fleetdata"
	"github.com/starling-fl/starling/internal/sim"
	"github.com/starling-fl/starling/program"
)

// fleet is a coordinator and its devices in this process, over data; it says on
// standard error what it is.
func (f demoFlags) fleet(a *command.App, c coordinator.Config, data *fleetdata.Data) sim.Config {
	c.Compile, c.Hosts = program.Step, []string{program.Hosts[0]}
	cfg := sim.Config{Coordinator: c, Clients: data.Clients, Faults: f.faults()}
	if f.open {
		cfg.Pages = pages(a.Stderr)
		cfg.Listening = func(url, adminToken string) { showDashboard(a.Stderr, dashboardAddress(url, adminToken)) }
	}
	if f.verbose {
		cfg.Log = slog.New(slog.NewTextHandler(a.Stderr, nil))
		cfg.Coordinator.Log = cfg.Log
	}
	labels := ""
	if n := len(data.Labels); n > 0 {
		labels = fmt.Sprintf("%d labels, ", n)
	}
	fmt.Fprintf(a.Stderr, "%s: %d devices, %s%d validation and %d test examples; %d of the devices will vanish in mid-round\n",
		data.Name, len(data.Clients), labels, len(data.Validation.Examples), len(data.Test.Examples), f.vanish)
	for _, note := range data.Notes {
		fmt.Fprintln(a.Stderr, "note: "+note)
	}
	if f.reproducible {
		cfg.Seed = binary.LittleEndian.AppendUint64(make([]byte, 24), f.seed)
		cfg.Coordinator.Seed = cfg.Seed
		fmt.Fprintln(a.Stderr, "reproducible: every secret is seeded, NOT PRIVATE")
	}
	return cfg
}

// faults spreads the vanishing edges over the run: each leaves for good in the
// middle of a round, one just before its masked update, one just before it
// would reveal its shares, and so on in turn.
func (f demoFlags) faults() map[int]sim.Fault {
	out := map[int]sim.Fault{}
	for i := range f.vanish {
		turn := 3
		if i%2 == 1 {
			turn = 5
		}
		out[(i+1)*f.clients/(f.vanish+1)] = sim.Fault{
			Version: 1 + (i+1)*f.rounds/(f.vanish+2), Turn: turn, Kind: sim.Vanish,
		}
	}
	return out
}
