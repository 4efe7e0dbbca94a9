//go:build unix

// Command fleet times rounds of a large fleet over real sockets: a coordinator in
// a process of its own, and light devices that speak the real protocol with real
// masking and train nothing. See run.sh.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/lab/internal/resident"
	"github.com/starling-fl/starling/lab/loadtest"
)

type options struct {
	Devices int
	Rounds  int
	Shard   int
	Hidden  int
	Drop    float64
	Late    time.Duration
	Profile string
	// Gateways is how many processes pass devices' connections on, over a NATS server in
	// another; 0: they dial the coordinator, and there is no TLS.
	Gateways int
	// Slack is the timer slack of the servers' threads, as in their unit.
	Slack time.Duration
	dir   string
	nats  string
}

func main() {
	var o options
	flag.IntVar(&o.Devices, "devices", 1000, "devices, all drawn in every round")
	flag.IntVar(&o.Rounds, "rounds", 3, "rounds")
	flag.IntVar(&o.Shard, "shard", 64, "largest shard")
	flag.IntVar(&o.Hidden, "hidden", 256, "width of the base; the update has about 66 values a unit of it")
	flag.Float64Var(&o.Drop, "drop", 0.1, "chance that a device hangs up before its update and comes back a second later")
	flag.DurationVar(&o.Late, "late", 0, "one device of the fleet sends its shares this late in every round")
	flag.StringVar(&o.Profile, "profile", "", "write the coordinator's processor profile, from the first round on, to this file, and gateways' and NATS' beside it")
	flag.IntVar(&o.Gateways, "gateways", 0, "gateways that devices dial, over NATS and with TLS, each a process; 0: they dial the coordinator")
	flag.DurationVar(&o.Slack, "slack", time.Millisecond, "how late the kernel may wake the servers' threads (Linux), as deploy/systemd has it; 50us is the kernel's own")
	role := flag.String("role", "", "for the servers' own processes; not to be set by hand")
	flag.StringVar(&o.dir, "dir", "", "the coordinator's folder, likewise")
	flag.StringVar(&o.nats, "nats", "", "where NATS is, likewise")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := drive
	switch *role {
	case "coordinator":
		run = coordinate
	case "nats":
		run = broker
	case "":
	default:
		run = func(ctx context.Context, o options) error { return pass(ctx, o, *role) }
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// drive starts the coordinator, plays the devices and prints a line a round.
func drive(ctx context.Context, o options) error {
	if err := files(uint64(o.Devices) + 200); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fleet-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slacken(o.Slack)
	between, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer between.end()
	cmd, lines, err := start(ctx, "coordinator", "-dir", dir, "-nats", between.nats)
	if err != nil {
		return err
	}
	f, err := loadtest.New(loadtest.Config{Devices: o.Devices, Drop: o.Drop, Late: o.Late, By: between.at}, lines.Text())
	if err != nil {
		return err
	}
	go f.Run(ctx)
	fmt.Printf("%d devices, %.0f %% hang up before their update, shards of at most %d, %d processors:\n\n", o.Devices, 100*o.Drop, o.Shard, runtime.NumCPU())
	fmt.Println("| round | dropped | wall s | others % | coordinator cpu s | of it the kernel's | devices cpu s | wall / devices' work | coordinator MB | devices MB |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	before := take()
	spent := between.cpu()
	var over [][]float64
	var releases []float64
	for lines.Scan() {
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("the coordinator says %q: %w", lines.Text(), err)
		}
		now := take()
		if r.Begins { // what is between rounds counts for none
			before, spent = now, between.cpu()
			continue
		}
		over = append(over, append([]float64{r.CPU}, differences(spent, between.cpu())...))
		d := now.minus(before)
		before = now
		if r.State != "committed" {
			fmt.Printf("| %d | %s: %s |\n", r.Round, r.State, r.Reason)
			continue
		}
		releases = append(releases, r.Release)
		// A processor that works for others is none of ours: the wall time that the
		// round would take alone is that much shorter.
		others := max(0, d.busy-r.CPU-d.cpu) / d.all
		work := d.cpu / float64(runtime.NumCPU())
		fmt.Printf("| %d | %d | %.2f | %.0f | %.2f | %.2f | %.2f | %.2f, net %.2f | %.0f | %.0f |\n", r.Round, r.Dropped, r.Wall,
			100*others, r.CPU, r.System, d.cpu, r.Wall/work, r.Wall*(1-others)/work, r.Peak, float64(resident.Own())/1e6)
	}
	between.show(over)
	fmt.Printf("\nReleases took %.2f s of the wall.\n", releases)
	seen := f.Report()
	fmt.Printf("\n%d connections broke and were made again.\n", seen.Broken)
	if seen.Ended > 0 {
		fmt.Printf("%d devices ended for good, the last because: %s\n", seen.Ended, seen.Cause)
	}
	return errors.Join(lines.Err(), cmd.Wait())
}

// start begins another process of this program, which says something on its first line.
func start(ctx context.Context, role string, args ...string) (*exec.Cmd, *bufio.Scanner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, self, append(append([]string{"-role", role}, args...), os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		return nil, nil, errors.Join(fmt.Errorf("%s did not start", role), cmd.Wait())
	}
	return cmd, lines, nil
}

// report is what the coordinator's process says at the beginning and the end of a
// round. CPU is seconds within the round, System those of them in the kernel, Peak
// megabytes since the start.
type report struct {
	Begins  bool
	Round   uint64
	State   string
	Reason  string
	Dropped int
	Wall    float64
	CPU     float64
	System  float64
	Peak    float64
	Release float64 // wall seconds from the last share to the commit
}

// files raises the limit of open files as far as it goes.
func files(need uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	if l.Max < need {
		return fmt.Errorf("%d open files are allowed, %d needed: raise the hard limit (ulimit -Hn)", l.Max, need)
	}
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}

// system is the processor time that the kernel has spent for this process, in
// seconds: system calls, and what loopback sockets do within them.
func system() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Stime.Nano()).Seconds()
}

// sample is processor time in seconds: this process's, and the machine's, busy
// and in all (Linux; elsewhere others cannot be told and count as nobody).
type sample struct{ cpu, busy, all float64 }

func take() sample {
	s := sample{cpu: cputime.Now().Seconds(), all: 1e-9}
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return s
	}
	var v [8]float64 // user nice system idle iowait irq softirq steal, in ticks of 10 ms
	var name string
	if _, err := fmt.Sscan(string(b), &name, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]); err != nil {
		return s
	}
	for i, x := range v {
		s.all += x / 100
		if i != 3 && i != 4 {
			s.busy += x / 100
		}
	}
	return s
}

func (s sample) minus(b sample) sample {
	return sample{s.cpu - b.cpu, s.busy - b.busy, max(s.all-b.all, 1e-9)}
}

// labels of a job need be two; nobody reads them.
func labels() []string { return []string{"a", "b"} }
