package idle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// supplies is where Linux lists batteries and chargers.
var supplies = "/sys/class/power_supply"

// onBattery reports whether a battery of this machine feeds it. Batteries of mice and headsets, whose scope is Device,
// do not count.
func onBattery() (bool, error) {
	found, err := os.ReadDir(supplies)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // a machine without a battery
	}
	if err != nil {
		return false, err
	}
	for _, f := range found {
		is := func(name, want string) bool {
			b, err := os.ReadFile(filepath.Join(supplies, f.Name(), name))
			return err == nil && strings.TrimSpace(string(b)) == want
		}
		if is("type", "Battery") && is("status", "Discharging") && !is("scope", "Device") {
			return true, nil
		}
	}
	return false, nil
}

// onMetered asks NetworkManager. It answers 1 for yes, 2 for no, 3 and 4 for a guess at yes and no, 0 for unknown.
func onMetered() (bool, error) {
	const name = "org.freedesktop.NetworkManager"
	out, err := exec.Command("busctl", "get-property", name, "/org/freedesktop/NetworkManager", name, "Metered").Output()
	if err != nil {
		return false, fmt.Errorf("NetworkManager does not answer: %w", err)
	}
	switch strings.TrimSpace(string(out)) {
	case "u 1", "u 3":
		return true, nil
	case "u 2", "u 4":
		return false, nil
	}
	return false, fmt.Errorf("NetworkManager answers %.40q", strings.TrimSpace(string(out)))
}
