package idle

import (
	"os"
	"path/filepath"
	"testing"
)

// As the kernel lists supplies: of a laptop on mains and on battery, of a desktop with a wireless mouse, of a server.
func TestBattery(t *testing.T) {
	old := supplies
	defer func() { supplies = old }()
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"charging": {map[string]string{"AC/type": "Mains", "AC/online": "1", "BAT0/type": "Battery", "BAT0/status": "Charging"}, false},
		"full":     {map[string]string{"BAT0/type": "Battery", "BAT0/status": "Not charging"}, false},
		"battery":  {map[string]string{"AC/type": "Mains", "AC/online": "0", "BAT0/type": "Battery", "BAT0/status": "Discharging"}, true},
		"mouse":    {map[string]string{"hid/type": "Battery", "hid/status": "Discharging", "hid/scope": "Device"}, false},
		"server":   {nil, false},
	} {
		supplies = filepath.Join(t.TempDir(), "power_supply")
		for path, text := range c.files {
			path = filepath.Join(supplies, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := onBattery(); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
