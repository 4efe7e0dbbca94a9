package operator

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
)

// showDashboard opens the address in a browser, or says where it is.
func showDashboard(w io.Writer, address string) {
	fmt.Fprintf(w, "dashboard, while it runs: %s\n", address)
	if err := openBrowser(address); err != nil {
		fmt.Fprintf(w, "no browser could be opened (%v): open the address yourself\n", err)
	}
}

// openBrowser starts the program that BROWSER names, or the system's own, and
// does not wait for it.
func openBrowser(address string) error {
	var cmd *exec.Cmd
	switch program := os.Getenv("BROWSER"); {
	case program != "":
		cmd = exec.Command(program, address)
	case runtime.GOOS == "darwin":
		cmd = exec.Command("open", address)
	case runtime.GOOS == "windows":
		cmd = exec.Command("rundll32", "url.dll,FileProtocolHandler", address)
	default:
		cmd = exec.Command("xdg-open", address)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a browser: %w", err)
	}
	go func() { _ = cmd.Wait() }() // only so that it leaves no zombie
	return nil
}
