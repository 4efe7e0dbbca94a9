//go:build linux

// Command bases measures what large bases cost: a real coordinator and real devices,
// each in a process of its own, over each base as it is and as 4-bit codes. A row
// tells the base's bytes on the wire, the processor time to open it, and the peaks of
// resident memory. See run.sh.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/starling-fl/starling/lab/internal/resident"
)

// devices is the smallest fleet that a job without guarantees against its own
// coordinator takes; a decoder's is larger.
func devices(base string) int {
	if decodes(base) {
		return 6
	}
	return 3
}

func decodes(base string) bool { return strings.HasPrefix(filepath.Base(base), "smollm2") }

func main() {
	binary := flag.String("starling", "bin/starling", "the program")
	role := flag.String("role", "", "for processes of its own; not to be set by hand")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *role == "make":
		err = makeBases(flag.Arg(0), flag.Arg(1))
	case *role == "load":
		err = load(flag.Arg(0), flag.Arg(1))
	case flag.NArg() == 0:
		err = errors.New("which bases? name folders in Hugging Face layout")
	default:
		err = table(ctx, *binary, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bases:", err)
		os.Exit(1)
	}
}

// variants are the jobs over each base.
var variants = []variant{{"", 0}, {"nf4", 0}, {"nf4", 1}}

type variant struct {
	format string // base_format
	micro  int    // micro_batch
}

func table(ctx context.Context, binary string, bases []string) error {
	fmt.Println("| base | as | micro-batch | on the wire MB | open, processor s | coordinator MB | coordinator, processor s | device MB | device, processor s |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, base := range bases {
		for _, v := range variants {
			if decodes(base) && v.micro == 0 && v.format == "" {
				continue // QLoRA, which is what people do
			}
			if err := measure(ctx, binary, base, v); err != nil {
				return fmt.Errorf("%s as %+v: %w", base, v, err)
			}
		}
	}
	return nil
}

// measure runs one job of one round and prints its row.
func measure(ctx context.Context, binary, base string, v variant) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, self, "-role", "load", base, v.format).Output()
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	var mb, seconds string
	if _, err := fmt.Sscan(string(out), &mb, &seconds); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bases-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	absolute, err := filepath.Abs(base)
	if err != nil {
		return err
	}
	if err := files(dir, absolute, v); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, binary, "serve", "--job", filepath.Join(dir, "job.yaml"), "--dir", filepath.Join(dir, "state"),
		"--listen", "127.0.0.1:0", "--linger", "1s")
	token, coordinator, err := start(c)
	if err != nil {
		return err
	}
	var fleet []*process
	n := devices(base)
	for i := range n {
		d := exec.CommandContext(ctx, binary, "join", "--trust-local", token, "--data", filepath.Join(dir, strconv.Itoa(i)+".jsonl"), "--cores", "1",
			"--identity", filepath.Join(dir, strconv.Itoa(i)+".pem"), "--cache", filepath.Join(dir, "cache"+strconv.Itoa(i)))
		d.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(dir, "home"+strconv.Itoa(i)), "XDG_STATE_HOME="+filepath.Join(dir, "home"+strconv.Itoa(i)))
		d.Stderr = os.Stderr
		p, err := watch(d)
		if err != nil {
			return err
		}
		fleet = append(fleet, p)
	}
	var peak, spent float64
	for _, p := range fleet {
		if err := p.wait(); err != nil {
			return fmt.Errorf("device: %w", err)
		}
		peak, spent = max(peak, p.peak), spent+p.cpu()/float64(n)
	}
	if err := coordinator.wait(); err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	micro := "-"
	if v.micro > 0 {
		micro = strconv.Itoa(v.micro)
	}
	fmt.Printf("| %s | %s | %s | %s | %s | %.0f | %.1f | %.0f | %.1f |\n", filepath.Base(base), cmp.Or(v.format, "stored"), micro, mb, seconds,
		coordinator.peak, coordinator.cpu(), peak, spent)
	return nil
}

// files writes the job, one round of one step, and what each device trains on, texts of
// 64 tokens, eight a step, or documents of 256 for a T5, four a step.
func files(dir, base string, v variant) error {
	head, example := "labels: [a, b]\n", func(i int) string {
		return fmt.Sprintf(`{"text": %q, "label": "%c"}`, fmt.Sprint(i, " ", strings.Repeat("this part is read to the end ", 12)), 'a'+i%2)
	}
	shape, batch := "rank_min: 8, rank_max: 8", 8
	if strings.HasPrefix(filepath.Base(base), "t5") {
		head, shape, batch = "task: answer\n", shape+", sequence: 256, answer: 16", 4
		example = document
	}
	if decodes(base) {
		head, batch = "task: causal\n", 2
		shape += ", sequence: 256"
		example = func(i int) string {
			var words strings.Builder
			for w := range 50 { // which no other device has
				fmt.Fprint(&words, " ", 100*i+w)
			}
			return fmt.Sprintf(`{"prompt": %q, "completion": %q}`, fmt.Sprint("count from ", 100*i, ":"), words.String())
		}
	}
	devices := devices(base)
	job := "name: bases\nrounds: 1\nbase: " + base + "\nbase_format: '" + v.format + "'\n" + head +
		fmt.Sprintf("adapter: {%s}\ntraining: {steps: 1, batch: %d, micro_batch: %d}\n", shape, batch, v.micro) +
		fmt.Sprintf("cohort: {population: %d, floor: %d}\nshard: {floor: %d, corrupt: 0, breach_bits: 0}\n", devices, devices, devices) +
		"privacy: {epsilon: 2, simulated_population: 1000000, simulated_cohort: 10000}\n"
	err := os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(job), 0o600)
	for i := range devices {
		var data bytes.Buffer
		for k := range 16 {
			fmt.Fprintln(&data, example(16*i+k)) // devices with the same data count as one
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".jsonl"), data.Bytes(), 0o600))
	}
	return err
}

// document is a line of words with boxes that fills 256 tokens.
func document(i int) string {
	var words, boxes []string
	for w := range 200 {
		words = append(words, fmt.Sprintf("%q", strconv.Itoa(100*i+w)))
		boxes = append(boxes, fmt.Sprintf("[%d, %d, %d, %d]", 10*(w%50), 20*(w/50), 10*(w%50)+9, 20*(w/50)+15))
	}
	return fmt.Sprintf(`{"words": [%s], "boxes": [%s], "question": "total?", "answers": ["%d"]}`,
		strings.Join(words, ", "), strings.Join(boxes, ", "), 100*i)
}

// start starts the coordinator and waits for its join token.
func start(cmd *exec.Cmd) (token string, p *process, err error) {
	said, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if p, err = watch(cmd); err != nil {
		return "", nil, err
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "starling join "); ok {
			token, _, _ = strings.Cut(rest, " ")
			go func() { // the pipe must not fill up
				for lines.Scan() {
				}
			}()
			return token, p, nil
		}
		fmt.Fprintln(os.Stderr, lines.Text())
	}
	return "", nil, errors.Join(errors.New("the coordinator did not start"), p.wait())
}

// process is a child whose peak of resident memory is read until it ends: what the
// system counts for a child that has ended includes its parent's, at the start.
type process struct {
	cmd  *exec.Cmd
	done chan error
	peak float64 // MB
}

func watch(cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	return p, nil
}

func (p *process) wait() error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-p.done:
			return err
		case <-tick.C:
			p.peak = max(p.peak, float64(resident.Peak(p.cmd.Process.Pid))*1024/1e6)
		}
	}
}

func (p *process) cpu() float64 {
	return (p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Seconds()
}
