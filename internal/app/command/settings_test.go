package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// settled runs a service with a command line, an environment and a file, and returns what
// its flags came to.
func settled(t *testing.T, args, environ []string, file string) (dir string, n int, wait time.Duration, list []string, log Log, err error) {
	t.Helper()
	newRoot := func(*App) *cobra.Command {
		root := &cobra.Command{Use: "starling"}
		cmd := &cobra.Command{Use: "serve"}
		cmd.Flags().StringVar(&dir, "dir", "", "")
		cmd.Flags().IntVar(&n, "most-devices", 1, "")
		cmd.Flags().DurationVar(&wait, "linger", time.Second, "")
		cmd.Flags().StringSliceVar(&list, "trust", nil, "")
		log.Flags(cmd.Flags())
		Settings(cmd)
		cmd.RunE = func(*cobra.Command, []string) error { return nil }
		root.AddCommand(cmd)
		return root
	}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		t.Setenv(name, value)
	}
	if file != "" {
		path := filepath.Join(t.TempDir(), "serve.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"--config", path}, args...)
	}
	var out, said bytes.Buffer
	if code := Run(context.Background(), newRoot, append([]string{"serve"}, args...), nil, &out, &said); code != 0 {
		err = errors.New(said.String())
	}
	return dir, n, wait, list, log, err
}

// TestSettings: a flag goes before its variable, and that before the file.
func TestSettings(t *testing.T) {
	dir, n, wait, list, log, err := settled(t, []string{"--dir", "flag"},
		[]string{"STARLING_SERVE_DIR=variable", "STARLING_SERVE_MOST_DEVICES=7", "STARLING_DATA=required", "STARLING_SERVER_X=another's"},
		"dir: file\nmost-devices: 9\nlinger: 5s\ntrust: [10.0.0.0/8, 192.0.2.1]\nlog: json\n")
	if err != nil {
		t.Fatal(err)
	}
	if dir != "flag" || n != 7 || wait != 5*time.Second || strings.Join(list, " ") != "10.0.0.0/8 192.0.2.1" || log.Format != "json" {
		t.Errorf("dir %q, %d, %v, %q, log %q", dir, n, wait, list, log.Format)
	}
}

// TestWrongSettings: what is not a setting is an error that names it.
func TestWrongSettings(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		file    string
		want    string
	}{
		"a variable's name":  {[]string{"STARLING_SERVE_DRI=x"}, "", "the variable STARLING_SERVE_DRI"},
		"a variable's value": {[]string{"STARLING_SERVE_MOST_DEVICES=many"}, "", "the variable STARLING_SERVE_MOST_DEVICES"},
		"a key":              {nil, "dri: x\n", "no flag --dri"},
		"a value":            {nil, "linger: soon\n", "linger"},
		"a mapping":          {nil, "dir: {a: b}\n", "want a text, a number or a list of them"},
		"010":                {nil, "most-devices: 010\n", "begins with a 0"},
		"a file in a file":   {nil, "config: other.yaml\n", "no flag --config"},
		"no YAML":            {nil, "dir: [\n", "--config"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, _, _, _, err := settled(t, nil, c.environ, c.file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestLog: what flags ask for is what is logged.
func TestLog(t *testing.T) {
	for name, c := range map[string]struct {
		log  Log
		want string
	}{
		"none":       {Log{}, ""},
		"text":       {Log{Format: "text"}, "level=INFO msg=seen"},
		"json":       {Log{Format: "json", Level: "debug"}, `"level":"DEBUG","msg":"hidden"`},
		"level only": {Log{Level: "info"}, "level=INFO msg=seen"},
	} {
		var b bytes.Buffer
		log, err := c.log.Logger(&b)
		if err != nil {
			t.Fatal(err)
		}
		if log != nil {
			log.Debug("hidden")
			log.Info("seen")
		}
		if (log == nil) != (c.want == "") || !strings.Contains(b.String(), c.want) || c.log.Level != "debug" && strings.Contains(b.String(), "hidden") {
			t.Errorf("%s: %q", name, b.String())
		}
	}
	for _, bad := range []Log{{Format: "xml"}, {Level: "loud"}, {Level: "info+3"}} {
		if _, err := bad.Logger(&bytes.Buffer{}); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
