package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever a command is given that it cannot read, its error names the file, and once.
func TestErrorsNameAFileOnce(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	folder := func(name string, files ...string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			write(filepath.Join(name, f), "\x00\xff{")
		}
		return path
	}
	checkpoint, _ := exportedCheckpoint(t)
	data := write("data.tsv", strings.Repeat("a\tone\nb\ttwo\n", 200))
	job := write("job.yaml", "name: x\nlabels: [a, b]\n")

	missing := func(ext string) string { return filepath.Join(dir, "missing"+ext) }
	// What stands where a file of that ending is wanted.
	files := func(ext string) map[string]string {
		return map[string]string{
			"missing": missing(ext), "a folder": folder("folder" + ext), "empty": write("empty"+ext, ""),
			"no text": write("noise"+ext, "\x00\xff\x00{:"), "text": write("text"+ext, "a: [b\nc,d\n\"e"), "long": write("long"+ext, strings.Repeat("x", 3<<20)),
		}
	}
	folders := func() map[string]string {
		return map[string]string{
			"missing": missing(""), "empty": folder("none"), "a file": write("afile", "x"),
			"noise": folder("junk", "config.json", "model.safetensors", "tokenizer.json", "starling.json", "adapter_model.safetensors", "adapter_config.json",
				"starling.db", "sweep.json"),
		}
	}
	for i, c := range []struct {
		of   map[string]string
		args string // FILE stands for it
		well string // what of it is no error
	}{
		{files(".tsv"), "demo --data FILE --out OUT", ""},
		{files(".csv"), "demo --data FILE --out OUT", ""},
		{files(".jsonl"), "simulate --data FILE --out OUT", ""},
		{files(".csv.gz"), "simulate --data FILE --out OUT", ""},
		{files(".csv"), "partition --data FILE", ""},
		{files(".tsv"), "evaluate --checkpoint CHECKPOINT FILE", ""},
		{files(".csv"), "predict --checkpoint CHECKPOINT FILE", "empty"},
		{files(".jsonl"), "predict --checkpoint CHECKPOINT FILE", "empty"},
		{files(".txt"), "predict --checkpoint CHECKPOINT FILE", "empty text"},
		{files(".jsonl"), "account --data FILE", ""},
		{files(".tsv"), "join http://127.0.0.1:1 --data FILE", ""},
		{files(".yaml"), "join http://127.0.0.1:1 --data DATA --policy FILE", "empty"},
		{files(".pem"), "join http://127.0.0.1:1 --data DATA --identity FILE", "missing"},
		{files(".pem"), "identity --identity FILE", "missing"},
		{files(".txt"), "join http://127.0.0.1:1 --data DATA --peers @FILE", ""},
		{files(".yaml"), "serve --job FILE --dir OUT", ""},
		{files(".yaml"), "job check FILE", ""},
		{files(".yaml"), "program verify --job FILE", ""},
		{files(".yaml"), "bench --job FILE", ""},
		{files(".yaml"), "privacy explain --job FILE", ""},
		{files(".yaml"), "privacy card FILE", ""},
		{files(".yaml"), "privacy audit --job FILE", ""},
		{files(".csv"), "privacy audit --job JOB --trace FILE", ""},
		{files(".yaml"), "sweep FILE --out OUT", "empty"},
		{files(".yaml"), "simulate --job FILE --out OUT", "empty, no text"},
		{files(".wasm"), "inspect FILE", ""},
		{files(".txt"), "pretrain --corpus FILE --out OUT", ""},
		{files(".gz"), "pretrain --corpus FILE --out OUT", ""},
		{files(".tsv"), "bandwidth --train --data FILE --rounds 2", ""},
		{files(".tsv"), "serve --job JOB --dir OUT --listen 127.0.0.1:0 --validation FILE", ""},
		{folders(), "demo --base FILE --out OUT", ""},
		{folders(), "demo --start FILE --out OUT", ""},
		{folders(), "simulate --base FILE --out OUT", ""},
		{folders(), "evaluate --checkpoint FILE DATA", ""},
		{folders(), "predict --checkpoint FILE DATA", ""},
		{folders(), "export --checkpoint FILE --out OUT", ""},
		{folders(), "import --base FILE --labels a,b --out OUT", ""},
		{folders(), "import --base CHECKPOINT/base --adapter FILE --labels a,b --out OUT", ""},
		{folders(), "report FILE", ""},
		{folders(), "reproduce FILE --out OUT", "empty, noise"},
		{folders(), "privacy ledger FILE", ""},
		{folders(), "devices --dir FILE list", ""},
	} {
		for what, path := range c.of {
			if strings.Contains(c.well, what) {
				continue
			}
			args := strings.Fields(strings.NewReplacer("FILE", path, "OUT", filepath.Join(dir, fmt.Sprint("out", i)), "CHECKPOINT", checkpoint, "DATA", data, "JOB", job).Replace(c.args))
			code, _, stderr := runCLI(t, args...)
			if n := strings.Count(stderr, filepath.Base(path)); code == 0 || n != 1 {
				t.Errorf("%s, %s: exit %d, named %d times: %.400s", c.args, what, code, n, stderr)
			}
		}
	}
}
