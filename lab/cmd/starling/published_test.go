package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// A job over an embedded base says which one it is; a device that takes bases from where they
// are published has it from its own program, and asks the coordinator for none.
func TestJoinTakesAPublishedBase(t *testing.T) {
	truth := serves(t, 50, "cohort: {population: 3, floor: 3}").learned()
	for _, from := range []string{"hub", "coordinator"} {
		l := truth.lies(t, func(job attack.Array) { job[attack.JobRounds] = 1000 })
		device := joins(t, t.TempDir(), l.token, "--base-from", from)
		s := watchdog.Recv(t, "a session", l.Sessions, device.String)
		t.Cleanup(s.End)
		if _, err := s.Wait(watchdog.Context(t), attack.Ready); err != nil {
			t.Fatalf("%v\n%s", err, device)
		}
		blob := fmt.Sprintf("/blob/%x", l.Job[attack.JobBase].(attack.Array)[0])
		if sent := slices.Contains(l.Asked(), blob); sent != (from == "coordinator") {
			t.Errorf("--base-from %s asks for %q", from, l.Asked())
		}
		if from == "hub" {
			device.says("fetching what is needed: base starling/default")
		}
		device.stop()
		device.exit()
	}
}
