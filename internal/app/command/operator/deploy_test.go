package operator

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
)

// TestDeploymentSetsFlags: each setting in the files of deploy/ is a flag of serve or of gateway.
func TestDeploymentSetsFlags(t *testing.T) {
	commands := map[string]*cobra.Command{"SERVE": newServeCmd(&command.App{}, nil), "GATEWAY": newGatewayCmd(&command.App{})}
	settings := regexp.MustCompile(`STARLING_(SERVE|GATEWAY)_([A-Z][A-Z_]*[A-Z])`)
	seen := 0
	err := fs.WalkDir(os.DirFS("../../../../deploy"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile("../../../../deploy/" + path)
		for _, m := range settings.FindAllStringSubmatch(string(b), -1) {
			seen++
			if name := strings.ToLower(strings.ReplaceAll(m[2], "_", "-")); commands[m[1]].Flags().Lookup(name) == nil {
				t.Errorf("%s sets %s, and there is no --%s", path, m[0], name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 10 {
		t.Errorf("%d settings were found", seen)
	}
}
