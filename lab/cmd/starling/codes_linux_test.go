package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// TestEveryCommandRefusesAlike: exit code 2 for a flag that there is none of, whatever the command.
func TestEveryCommandRefusesAlike(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		var out, said bytes.Buffer
		code := run(t.Context(), append(path, "--no-such-flag"), strings.NewReader(""), &out, &said)
		if strings.HasSuffix(said.String(), "with the same flags\nRun 'starling help' or add --help to the command for its usage.\n") && code == 2 {
			return // it says under which name it is now
		}
		if code != 2 || !strings.Contains(said.String(), "unknown flag: --no-such-flag") {
			t.Errorf("%v: exit %d, %s", path, code, said.String())
		}
		if c.HasSubCommands() {
			said.Reset()
			if code := run(t.Context(), append(path, "no-such-command"), strings.NewReader(""), &out, &said); code != 2 || !strings.Contains(said.String(), `unknown command "no-such-command"`) {
				t.Errorf("%v: exit %d, %s", path, code, said.String())
			}
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(command.Root(&command.App{}, newRootCmd))
}

// TestWhatIsNoFileIsRefused: whatever a command is given for a file, it does not wait to open it,
// and says what is wrong by exit code 2; also of what is not there.
func TestWhatIsNoFileIsRefused(t *testing.T) {
	job, err := filepath.Abs("../../../examples/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	pipe := filepath.Join(dir, "pipe.tsv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"simulate --data FILE", "simulate --job FILE", "simulate --base FILE", "shadows --out s --data FILE --test FILE", "sweep FILE", "report FILE",
		"serve --job FILE --dir r", "serve --config FILE", "serve --job JOB --dir r --validation FILE", "demo --data FILE",
		"serve --job JOB --dir r --tls-cert FILE --tls-key FILE --url https://x.example", "demo --base FILE",
		"join http://127.0.0.1:1 --data FILE", "join @FILE --data x", "join http://127.0.0.1:1 --data x --policy FILE", "join http://127.0.0.1:1 --config FILE",
		"predict --checkpoint FILE", "evaluate --checkpoint FILE FILE", "export --checkpoint FILE --out o", "import --base FILE --out o",
		"audit membership --checkpoint FILE --members FILE --others FILE", "account --data FILE", "identity --identity FILE", "bench --job FILE",
		"privacy explain --job FILE", "privacy audit --job FILE", "privacy audit --job JOB --trace FILE", "job submit --dir r FILE", "inspect FILE",
		"devices list --server http://127.0.0.1:1 --token-file FILE", "loadtest @FILE", "lab voices --words FILE --out o",
	} {
		for _, file := range []string{pipe, filepath.Join(dir, "none")} {
			if file != pipe && strings.HasPrefix(line, "identity") { // which makes one
				continue
			}
			args := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(line, "FILE", file), "JOB", job))
			var out, said bytes.Buffer
			code := -1
			watchdog.Wait(t, line, func() { code = run(t.Context(), args, strings.NewReader(""), &out, &said) })
			if code != 2 || !strings.Contains(said.String(), filepath.Base(file)) {
				t.Errorf("%s of %s: exit %d, %s", line, filepath.Base(file), code, said.String())
			}
		}
	}
}

// TestAFileIsNoFolder: a file in place of a folder is what was given wrong.
func TestAFileIsNoFolder(t *testing.T) {
	job, err := filepath.Abs("../../../examples/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"serve --dir FILE", "serve --job JOB --dir FILE", "devices list --dir FILE", "job list --dir FILE", "job submit --dir FILE JOB",
		"token create --dir FILE", "export --checkpoint x --out FILE", "import --base x --out FILE", "privacy ledger FILE", "lab invoices --out FILE"} {
		var out, said bytes.Buffer
		args := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(line, "FILE", file), "JOB", job))
		if code := run(t.Context(), args, strings.NewReader(""), &out, &said); code != 2 || !strings.Contains(said.String(), file) {
			t.Errorf("%s: exit %d, %s", line, code, said.String())
		}
	}
}

// TestSignalsEndAWaitForInput: a command that waits for what a shell hands in ends by one signal,
// with that signal's exit code.
func TestSignalsEndAWaitForInput(t *testing.T) {
	binary := build(t)
	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		cmd := exec.Command(binary, "privacy", "explain", "--job", "/dev/stdin")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		watchdog.Wait(t, "a reader", func() { // a pipe holds 64 KiB: this much goes in once it is read
			_, err = in.Write(bytes.Repeat([]byte("#\n"), 40<<10))
		})
		if err == nil {
			err = cmd.Process.Signal(signal)
		}
		watchdog.Wait(t, "an end", func() { _ = cmd.Wait() })
		if code := cmd.ProcessState.ExitCode(); err != nil || code != want {
			t.Errorf("%v: exit %d, want %d (%v)", signal, code, want, err)
		}
	}
}
