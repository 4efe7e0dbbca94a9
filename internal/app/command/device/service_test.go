package device

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// serviceChild names the variable by which a test calls this program again, as a command line: the library looks for the
// system's manager when a process begins.
const serviceChild = "STARLING_TEST_SERVICE"

func TestMain(m *testing.M) {
	if line, is := os.LookupEnv(serviceChild); is {
		os.Exit(run(context.Background(), strings.Split(line, "\n"), strings.NewReader(""), os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// A service is installed with absolute paths and a token that only its owner may read, is not installed twice, and leaves
// nothing when it is removed. systemctl is replaced by a script that notes what it is asked.
func TestService(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the script stands for systemd's")
	}
	folder := t.TempDir()
	write := func(name, text string, perm os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), perm); err != nil {
			t.Fatal(err)
		}
	}
	write("my.tsv", "x\tthe fox\ny\tthe dog\n", 0o600)
	write("fleet.yaml", "on-mains: true\nquiet: [\"09:00-17:00\", \"22:00-23:00\"]\n", 0o600)
	write("systemctl", "#!/bin/sh\necho \"$@\" >> "+folder+"/calls\ncase \"$*\" in is-active*) echo active;; esac\n", 0o700)
	write("rpm-ostree", "#!/bin/sh\n", 0o700) // by it the library takes this machine for one with systemd
	ask := func(args ...string) (string, int) {
		t.Helper()
		cmd := exec.CommandContext(watchdog.Context(t), os.Args[0])
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), serviceChild+"="+strings.Join(args, "\n"), "HOME="+folder, "PATH="+folder, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=")
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	for _, wrong := range []struct{ says, line string }{
		{"--data is required", "install x"},
		{"no such file", "install http://127.0.0.1:1 --data other.tsv"},
		{"--name is \"../x\"", "install http://127.0.0.1:1 --data my.tsv --name ../x"},
		{"nobody is there to be asked", "install http://127.0.0.1:1 --data my.tsv --ask-again"},
		{"no time of day", "install http://127.0.0.1:1 --data my.tsv --quiet 9-17"},
		{"is not installed", "start"},
	} {
		if out, code := ask(append([]string{"service"}, strings.Fields(wrong.line)...)...); code != 2 || !strings.Contains(out, wrong.says) {
			t.Errorf("%s: exit %d: %s", wrong.line, code, out)
		}
	}
	installing := []string{"service", "install", "http://127.0.0.1:1", "--data", "my.tsv", "--config", "fleet.yaml", "--uplinks", "nf4,int4"}
	if out, code := ask(installing...); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	unit, err := os.ReadFile(filepath.Join(folder, ".config/systemd/user/starling.service"))
	if err != nil || !bytes.Contains(unit, []byte("WantedBy=default.target")) || bytes.Contains(unit, []byte("http://")) {
		t.Errorf("%v: unit %s", err, unit)
	}
	settings := filepath.Join(folder, ".config/starling/service-starling/join.yaml")
	b, err := os.ReadFile(settings)
	want := fmt.Sprintf("accounts: [%q]\ncache: [%q]\ndata: [%q]\n", folder+"/.config/starling/accounts", folder+"/.cache/starling", folder+"/my.tsv")
	if rest, ok := strings.CutPrefix(string(b), want); err != nil || !ok ||
		!strings.HasSuffix(rest, `on-mains: ["true"]
quiet: ["09:00-17:00","22:00-23:00"]
uplinks: ["nf4","int4"]
`) {
		t.Errorf("%v: settings\n%s, want\n%s...", err, b, want)
	}
	if info, err := os.Stat(filepath.Join(filepath.Dir(settings), "tokens")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("tokens: %v, %v", info, err)
	}
	if out, code := ask(installing...); code != 2 || !strings.Contains(out, "remove it first") {
		t.Errorf("installed twice: exit %d: %s", code, out)
	}
	out, code := ask("service", "status", "--json")
	var got serviceReport
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || got.State != "running" || got.Settings != settings {
		t.Errorf("status: %v: exit %d: %s", err, code, out)
	}
	// What the system runs reads these settings, as join does; the machine that this test runs on rests always.
	all := "data: " + folder + "/my.tsv\nquiet: [\"00:00-12:00\", \"12:00-00:00\"]\nlook: 3s\n"
	if err := os.WriteFile(settings, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := ask("service", "run"); code != 2 || !strings.Contains(out, "are for --fleet") {
		t.Errorf("run: exit %d: %s", code, out)
	}
	if out, code := ask("service", "remove"); code != 0 {
		t.Errorf("remove: exit %d: %s", code, out)
	}
	for _, gone := range []string{filepath.Dir(settings), filepath.Join(folder, ".config/systemd/user/starling.service")} {
		if _, err := os.Stat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", gone, err)
		}
	}
	calls, err := os.ReadFile(filepath.Join(folder, "calls"))
	want = "enable --user starling.service\ndaemon-reload --user\nstart --user starling.service\n"
	if err != nil || !strings.HasPrefix(string(calls), want) || !strings.Contains(string(calls), "stop --user starling.service\ndisable --user starling.service\n") {
		t.Errorf("%v: systemctl was asked\n%s", err, calls)
	}
}
