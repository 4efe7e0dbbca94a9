package device

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/accounts"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine"
)

// run executes a command line of a device's commands.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := func(a *command.App) *cobra.Command {
		root := &cobra.Command{Use: "device"}
		root.AddCommand(Commands(a, engine.Flags{})...)
		return root
	}
	return command.Run(ctx, root, args, stdin, stdout, stderr)
}

// A token need not be in the list of processes.
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

// What a data set has given is there to be read, in all and by machine, while nothing
// is joined; a name that a coordinator chose is shown as text.
func TestAccountCommand(t *testing.T) {
	folder := t.TempDir()
	data, identity := filepath.Join(folder, "a.tsv"), filepath.Join(folder, "id.pem")
	if err := os.WriteFile(data, []byte("x\tthe fox\ny\tthe dog\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := accounts.OldPath(identity, data)
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
	var report accounts.Report
	got, code := ask("--json")
	if err := json.Unmarshal([]byte(got), &report); err != nil || code != 0 || len(report.Jobs) != 3 || report.Spent.Devices.Rounds != 7 {
		t.Errorf("exit %d: %s: %v", code, got, err)
	}
}
