package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// The tests of this file and of attack_device_test.go aim package attack, which
// knows the protocol from its document alone, at the commands themselves: 'starling
// serve' and 'starling join', run as main runs them.

// ours is one of our commands, running.
type ours struct {
	t    *testing.T
	name string
	stop context.CancelFunc
	done chan int // its exit code

	heard chan struct{} // filled when it says something

	mu   sync.Mutex
	said bytes.Buffer // standard error, by mu
	out  bytes.Buffer // standard output, valid once it is done
}

// Write takes what the command says.
func (c *ours) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.heard <- struct{}{}:
	default:
	}
	return c.said.Write(b)
}

func (c *ours) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name + " said:\n" + c.said.String()
}

// runs starts a command; it is stopped with the test.
func runs(t *testing.T, args ...string) *ours {
	t.Helper()
	ctx, stop := context.WithCancel(watchdog.Context(t))
	c := &ours{t: t, name: args[0], stop: stop, done: make(chan int, 1), heard: make(chan struct{}, 1)}
	go func() { c.done <- run(ctx, args, strings.NewReader(""), &c.out, c) }()
	t.Cleanup(func() {
		stop()
		c.exit()
	})
	return c
}

// exit waits for the command's end.
func (c *ours) exit() int {
	c.t.Helper()
	code := watchdog.Recv(c.t, "the end of "+c.name, c.done, c.String)
	c.done <- code // for the cleanup
	return code
}

// says waits until standard error matches.
func (c *ours) says(pattern string) []string {
	c.t.Helper()
	re := regexp.MustCompile(pattern)
	for {
		if found := re.FindStringSubmatch(c.String()); found != nil {
			return found
		}
		watchdog.Recv(c.t, "the words "+pattern, c.heard, c.String)
	}
}

// target is a real coordinator.
type target struct {
	*ours
	dir   string
	token attack.Token
}

// serves starts a coordinator of a job of four devices and rounds of rank 1, with
// what more the job's file says and more flags.
func serves(t *testing.T, rounds int, more string, flags ...string) *target {
	t.Helper()
	text := fmt.Sprintf("name: attacked\nlabels: [one, two]\nrounds: %d\nadapter: {rank_min: 1, rank_max: 1}\ntraining: {steps: 1, batch: 2}\n"+
		"privacy: {simulated_population: 1000000, simulated_cohort: 10000, noise_multiplier: 1, epsilon: 8}\n%s\n", rounds, more)
	if !strings.Contains(more, "shard:") {
		text += "shard: {size: 32, floor: 3, corrupt: 0, breach_bits: 0}\n"
	}
	if !strings.Contains(more, "cohort:") {
		text += "cohort: {population: 4, floor: 3}\n"
	}
	return servesJob(t, text, flags...)
}

// servesJob starts a coordinator of a job's file.
func servesJob(t *testing.T, text string, flags ...string) *target {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	job := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	c := runs(t, append([]string{"serve", "--job", job, "--dir", state, "--listen", "127.0.0.1:0", "--linger", "0s", "--verbose"}, flags...)...)
	token, err := attack.ParseToken(c.says(`join with: starling join (\S+)`)[1])
	if err != nil {
		t.Fatal(err)
	}
	return &target{c, dir, token}
}

// joins starts a real device with data of its own; folder holds what it keeps.
func joins(t *testing.T, folder, token string, flags ...string) *ours {
	t.Helper()
	return joinsWith(t, folder, "data.tsv", "one\tthe fox runs\ntwo\tthe dog sleeps\none\ta fox\ntwo\ta dog\n", token, flags...)
}

// joinsWith is joins with a file of the test's.
func joinsWith(t *testing.T, folder, name, content, token string, flags ...string) *ours {
	t.Helper()
	data := filepath.Join(folder, name)
	if err := os.WriteFile(data, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return runs(t, append([]string{"join", "--trust-local", token, "--data", data, "--identity", filepath.Join(folder, "identity.pem"),
		"--accounts", filepath.Join(folder, "accounts"), "--cache", filepath.Join(folder, "cache")}, flags...)...)
}

// ended is how a device of the attack fared.
type ended struct {
	outcomes []uint64
	err      error
}

// takesPart plays a device until the job is over.
func takesPart(t *testing.T, d *attack.Device, s attack.Script) <-chan ended {
	t.Helper()
	ctx := watchdog.Context(t)
	join(t, d)
	done := make(chan ended, 1)
	go func() {
		outcomes, err := d.TakePart(ctx, s)
		if errors.Is(err, attack.ErrFinished) {
			d.Close() // else the coordinator gives it 5 seconds to hang up
		}
		done <- ended{outcomes, err}
	}()
	t.Cleanup(d.Close)
	return done
}

// join enrols a device that tells no lies.
func join(t *testing.T, d *attack.Device) {
	t.Helper()
	ctx, stop := context.WithTimeout(watchdog.Context(t), time.Minute)
	defer stop()
	if err := d.Join(ctx); err != nil {
		t.Fatal(err)
	}
}
