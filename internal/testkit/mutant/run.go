package mutant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/starling-fl/starling/internal/testkit/nightly"
)

// Verdict says whether a test noticed the fault.
type Verdict int

// The verdicts.
const (
	Alive  Verdict = iota // the test passed: nobody noticed
	Killed                // the test failed, or did not end in time
)

func (v Verdict) String() string { return [...]string{"alive", "killed"}[v] }

// ErrRun is a test that could not be run: it does not build, or there is none.
var ErrRun = errors.New("cannot be tried")

// Bound limits the time of a fault's test, without its build.
const Bound = time.Minute

// building is how long that may take on a busy machine.
const building = 10 * time.Minute

// Try lays the fault over the module at root and runs its test.
func (r Record) Try(ctx context.Context, root string) (v Verdict, output string, err error) {
	at := filepath.Join(root, filepath.FromSlash(r.File))
	text, err := os.ReadFile(at)
	if err != nil {
		return 0, "", fmt.Errorf("%w: %w", ErrApply, err)
	}
	changed, err := r.Apply(string(text))
	if err != nil {
		return 0, "", err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return 0, "", err
	}
	defer os.RemoveAll(dir)
	mutated, overlay := filepath.Join(dir, filepath.Base(at)), filepath.Join(dir, "overlay.json")
	names, err := json.Marshal(map[string]map[string]string{"Replace": {at: mutated}})
	if err != nil {
		return 0, "", err
	}
	if err := errors.Join(os.WriteFile(mutated, []byte(changed), 0o600), os.WriteFile(overlay, names, 0o600)); err != nil {
		return 0, "", err
	}
	return r.Test.run(ctx, root, "-overlay="+overlay)
}

// Passes holds that the test passes without any fault: else it kills nothing.
func (t Test) Passes(ctx context.Context, root string) error {
	v, output, err := t.run(ctx, root)
	if err == nil && v == Killed {
		err = fmt.Errorf("%w: it fails without a fault:\n%s", ErrRun, output)
	}
	return err
}

// ran is the line of a package whose tests ran: of several some may have none of the name.
var ran = regexp.MustCompile(`(?m)^ok\s+\S+\s+(\(cached\)|[0-9.]+s)$`)

func (t Test) run(ctx context.Context, root string, flags ...string) (Verdict, string, error) {
	ctx, cancel := context.WithTimeout(ctx, Bound+building)
	defer cancel()
	args := append([]string{"test", "-vet=off", "-failfast", "-timeout=" + Bound.String(), "-run", t.Run}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, t.Package)...)
	cmd.Dir, cmd.WaitDelay = root, 10*time.Second
	cmd.Env = append(cmd.Environ(), nightly.Variable+"=1") // a fault may be noticed by a case that is not played by day
	out, err := cmd.CombinedOutput()
	text := string(out)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, text, fmt.Errorf("%w: %s %s: %w", ErrRun, t.Package, t.Run, context.Cause(ctx))
	case err == nil && !ran.MatchString(text):
		return 0, text, fmt.Errorf("%w: %s has no test %s", ErrRun, t.Package, t.Run)
	case err == nil:
		return Alive, text, nil
	case !errors.As(err, &exit), strings.Contains(text, "[build failed]"), strings.Contains(text, "[setup failed]"):
		return 0, text, fmt.Errorf("%w: %s: %w\n%s", ErrRun, t.Package, err, text)
	}
	return Killed, text, nil
}
