package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/wire"
)

// A token need not stand in the list of processes.
func TestTokenFromElsewhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("starling2_abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]string{"@" + file: "starling2_abc", "-": "starling2_def", "starling1_x": "starling1_x"} {
		if got, err := readToken(strings.NewReader(" starling2_def \n"), where); err != nil || got != want {
			t.Errorf("%s: %q, %v", where, got, err)
		}
	}
	if _, err := readToken(nil, "@"+file+"x"); err == nil {
		t.Error("a file that is not there")
	}
}

// Where a document or a command's help shows a token it is of the form that is printed.
func TestTokensShownAreOfTheFormPrinted(t *testing.T) {
	form, _, _ := strings.Cut(wire.Token{URL: "http://127.0.0.1"}.String(), "_")
	shown := regexp.MustCompile(`(starling\d+)_\.\.\.`)
	texts := map[string]string{}
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../web/edge/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(b)
		}
	}
	for _, cmd := range newRootCmd(&app{}).Commands() {
		texts[cmd.Name()] = cmd.Long + cmd.Example
	}
	found := 0
	for name, text := range texts {
		for _, m := range shown.FindAllStringSubmatch(text, -1) {
			if found++; m[1] != form {
				t.Errorf("%s shows %s, serve prints %s_...", name, m[0], form)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d tokens are shown in %d texts", found, len(texts))
	}
}

// What a data set has given is there to be read, in all and by machine, while nothing
// is joined; a name that a coordinator chose is shown as text.
func TestAccountCommand(t *testing.T) {
	folder := t.TempDir()
	data, identity := filepath.Join(folder, "a.tsv"), filepath.Join(folder, "id.pem")
	write(t, data, "x\tthe fox\ny\tthe dog\n")
	path, err := oldAccountPath(identity, data)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(args ...string) (string, int) {
		var out, said bytes.Buffer
		code := run(t.Context(), append([]string{"account", "--data", data, "--identity", identity, "--accounts", filepath.Join(folder, "accounts")}, args...), strings.NewReader(""), &out, &said)
		return out.String() + said.String(), code
	}
	if text, code := ask(); code == 0 || !strings.Contains(text, "has no account") {
		t.Errorf("exit %d: %s", code, text)
	}
	job := func(name string, contributed int, noise float64) string {
		quoted, _ := json.Marshal(name)
		return fmt.Sprintf(`{"name":%s,"promised":20,"answered":9,"begun":9,"contributed":%d,"committed":1,"noise":%v,"delta":1e-6,"last":1}`, quoted, contributed, noise)
	}
	text := `{"version":1,"jobs":{"aa":` + job("one", 3, 1) + `,"bb":` + job("two", 4, 1) + `,"cc":` + job("x\u001b[2J", 1, 0) + `},"begun":{}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, code := ask(); code != 0 || !strings.Contains(got, "7 rounds") || !strings.Contains(got, "in all") || !strings.Contains(got, "no bound") || strings.Contains(got, "\x1b") {
		t.Errorf("exit %d: %q", code, got)
	}
	var report accountReport
	got, code := ask("--json")
	if err := json.Unmarshal([]byte(got), &report); err != nil || code != 0 || len(report.Jobs) != 3 || report.Spent.Devices.Rounds != 7 {
		t.Errorf("exit %d: %s: %v", code, got, err)
	}
}
