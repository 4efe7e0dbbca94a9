//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// TestFleetFindsJobs: devices join a fleet by one token while it has one job. They take part in
// one that is submitted later, and in none that asks for more than their owners allow, and go on.
func TestFleetFindsJobs(t *testing.T) {
	t.Parallel()
	dir, binary := t.TempDir(), build(t)
	const devices = 4
	data, state := filepath.Join(dir, "data"), filepath.Join(dir, "state")
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(watchdog.Context(t), binary, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	submit := func(name, pool string, rank int) {
		t.Helper()
		text := fmt.Sprintf(`
name: %s
labels: [catering, energy, freight, maintenance, office, software, telecom, travel]
rounds: 3
adapter: {rank_min: 1, rank_max: %d}
cohort: {population: %d, floor: 4}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`, name, rank, devices)
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run("job", "submit", "--dir", state, "--pool", pool, file)
	}
	run("lab", "invoices", "--out", data, "--clients", fmt.Sprint(devices))
	submit("first", "fleet", 2)
	server := start(t, binary, "serve", "--dir", state, "--listen", freePort(t), "--log", "text")
	token := server.await(t, `starling join --fleet (\S+)`)[1]
	var joined []*process
	for i := range devices {
		joined = append(joined, start(t, binary, "join", "--trust-local", "--fleet", token, "--look", "1s", "--epsilon", "1e12", "--rank", "2", "--accept-not-private",
			"--data", filepath.Join(data, fmt.Sprintf("train-%d.jsonl", i)), "--identity", filepath.Join(dir, fmt.Sprintf("identity-%d.pem", i)),
			"--cache", filepath.Join(dir, "cache"), "--accounts", filepath.Join(dir, "accounts")))
	}
	each := func(line string) {
		t.Helper()
		for _, p := range joined {
			p.await(t, line)
		}
	}
	each(`^job first: round \d is made`)
	each(`^job first: ended`)
	submit("greedy", "fleet", 8)
	each(`^job greedy: ended: .*rank`)
	submit("elsewhere", "others", 2)
	submit("second", "fleet", 2)
	each(`^job second: round \d is made`)
	each(`^job second: ended`)
	for i, p := range joined {
		if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		p.end()
		for _, job := range []string{"first", "second"} {
			if said := "job " + job + ": took part in "; !strings.Contains(p.out.String(), said) {
				t.Errorf("device %d does not say %q: %s\n%s", i, said, p.out.String(), p.said())
			}
		}
		if strings.Contains(p.said(), "job elsewhere") {
			t.Errorf("device %d looked at another pool's job:\n%s", i, p.said())
		}
	}
	// Who has said nothing of what all jobs may cost takes part in none.
	for want, more := range map[string][]string{"--fleet needs --epsilon": nil, "--tasks: \"rob\", want some of": {"--epsilon", "1", "--tasks", "rob"}, "--look is 1ms": {"--epsilon", "1", "--look", "1ms"}} {
		args := append([]string{"join", "--trust-local", "--fleet", token, "--data", filepath.Join(data, "train-0.jsonl"), "--identity", filepath.Join(dir, "identity-0.pem")}, more...)
		if out, err := exec.CommandContext(watchdog.Context(t), binary, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %s", more, out)
		}
	}
}
