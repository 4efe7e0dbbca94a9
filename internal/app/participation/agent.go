package participation

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// runs is what runs training programs here.
const runs = "wazero"

// agent is what a device calls itself to a coordinator: the program with its version, the
// platform and what runs programs. An operator sees by it which devices to bring up to date.
func agent(version string) string {
	platform := fmt.Sprintf(" %s/%s %s", runtime.GOOS, runtime.GOARCH, runs)
	program := "starling/" + strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, version)
	return program[:min(len(program), wire.MaxName-len(platform))] + platform
}
