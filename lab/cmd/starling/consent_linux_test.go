package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// openTerminal is a pseudo-terminal: what a command has for its streams, and who sits there.
func openTerminal(t *testing.T) (streams, owner *os.File) {
	t.Helper()
	owner, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err) // a machine without terminals
	}
	t.Cleanup(func() { owner.Close() })
	if err := unix.IoctlSetPointerInt(int(owner.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(owner.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if streams, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { streams.Close() })
	return streams, owner
}

// sits starts join at a terminal. What it says is heard as of any command.
func sits(t *testing.T, args ...string) (c *ours, owner *os.File) {
	t.Helper()
	streams, owner := openTerminal(t)
	ctx, stop := context.WithCancel(watchdog.Context(t))
	c = &ours{t: t, name: "join", stop: stop, done: make(chan int, 1), heard: make(chan struct{}, 1)}
	go func() { _, _ = io.Copy(c, owner) }() // ends with the terminal
	go func() { c.done <- run(ctx, args, streams, &c.out, streams) }()
	t.Cleanup(func() {
		stop()
		c.exit()
	})
	return c, owner
}

// An owner at a terminal is asked about each thing that a job asks for beyond the policy,
// in words that say what protects the data then, and only a yes is one. It is remembered:
// without a terminal the same job is joined, a worse one is not.
func TestConsentAtATerminal(t *testing.T) {
	const question, again = "type yes: ", "forgets it"
	truth := learn(t)
	l := truth.lies(t, func(job attack.Array) { job[attack.JobRounds], job[attack.JobSteps] = 5, 8 })
	ctx := watchdog.Context(t)
	folder := t.TempDir()
	args := func(token string) []string {
		data := filepath.Join(folder, "data.tsv")
		if err := os.WriteFile(data, []byte("one\tthe fox runs\ntwo\tthe dog sleeps\none\ta fox\ntwo\ta dog\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"join", "--trust-local", token, "--data", data, "--identity", filepath.Join(folder, "identity.pem"), "--policy", filepath.Join("..", "..", "..", "examples", "policy.yaml"),
			"--accounts", filepath.Join(folder, "accounts"), "--cache", filepath.Join(folder, "cache")}
	}
	gone := func() { t.Cleanup(watchdog.Recv(t, "a session", l.Sessions).End) } // it ends by itself

	device := runs(t, args(l.token)...) // nobody there
	gone()
	if code := device.exit(); code != 1 || !strings.Contains(device.String(), "--own-noise=0") || strings.Contains(device.String(), question) {
		t.Fatalf("ended with %d: %s", code, device)
	}
	for _, no := range []string{"\n", "y\n", "no\n", "yes please\n", "\x04"} {
		c, owner := sits(t, args(l.token)...)
		gone()
		c.says(question)
		if said := strings.Join(strings.Fields(c.String()), " "); !strings.Contains(said, "Nothing but this coordinator's honesty protects your data") || !strings.Contains(said, "(your limit: at least 0.1)") {
			t.Errorf("asked with: %s", said)
		}
		if _, err := io.WriteString(owner, no); err != nil {
			t.Fatal(err)
		}
		if code := c.exit(); code != 1 || strings.Contains(c.String(), "waiting") {
			t.Errorf("%q is a yes: %d, %s", no, code, c)
		}
	}

	c, owner := sits(t, args(l.token)...)
	yes := func(words string) {
		t.Helper()
		c.says(words + `[\s\S]*` + question)
		c.mu.Lock()
		c.said.Reset()
		c.mu.Unlock()
		if _, err := io.WriteString(owner, "yes\n"); err != nil {
			t.Fatal(err)
		}
	}
	gone()
	yes("(?i)the coordinator alone adds the noise") // what the job announces
	s := l.session(ctx, c)
	// What the data shows is told and not asked: whether a device asks would tell of it.
	c.says(`(?i)your data has 4 examples[\s\S]*takes part with zeros`)
	l.must(s.Assign(ctx, l.plan(nil)))
	if f, err := s.Next(ctx); err == nil && f.Kind != attack.Refuse { // or it is gone, to ask its owner
		t.Fatalf("a round of two examples: %v", f)
	}
	yes("(?i)average 2 at most") // what a round plans
	s.End()
	s = l.session(ctx, c)
	sum := l.whole(ctx, s, l.plan(nil))
	if !slices.ContainsFunc(sum, func(x int32) bool { return x != 0 }) {
		t.Error("the update is all zeros")
	}
	// One line follows the round, with a bar of the job's rounds and what was moved.
	c.says(`\[[#-]{16}\] \d+ of 5 rounds · .*sent [\d.]+ k?B`)
	c.stop()
	c.exit()
	s.End()

	device = runs(t, args(l.token)...)
	device.says(again)
	l.whole(ctx, l.session(ctx, device), l.plan(nil))
	device.stop()
	device.exit()

	l.Job[attack.JobRounds] = 20_000 // worse
	l.token = l.Token(l.url).String()
	device = runs(t, args(l.token)...)
	gone()
	if code := device.exit(); code != 1 || !strings.Contains(device.String(), "--rounds=20000") || strings.Contains(device.String(), "--own-noise") {
		t.Errorf("worse terms: %d, %s", code, device)
	}
	device = runs(t, append(args(l.token), "--ask-again")...)
	gone()
	if code := device.exit(); code != 1 || !strings.Contains(device.String(), "--own-noise") {
		t.Errorf("asked again: %d, %s", code, device)
	}
}
