package unattended

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A service ends with its work, with the work's error; one that the system stops waits until the work has ended.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := errors.New("the job is over")
		w := &work{run: func(context.Context, []string) error { return over }}
		w.begin(t.Context(), nil)
		if err := w.Start(nil); err != nil {
			t.Fatal(err)
		}
		w.wait()
		if err := w.Stop(nil); err != nil || !errors.Is(w.end(), over) {
			t.Errorf("%v, %v", err, w.end())
		}

		var given []string
		w = &work{run: func(ctx context.Context, arguments []string) error {
			given = arguments
			<-ctx.Done()
			return ctx.Err()
		}}
		w.begin(t.Context(), []string{"--config", "join.yaml"})
		if err := w.Start(nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := w.Stop(nil); err != nil || !errors.Is(w.end(), context.Canceled) || len(given) != 2 {
			t.Errorf("%v, %v, %q", err, w.end(), given)
		}
	})
}

// Where the machine's manager runs nothing for one user, its owner is told before anything is written.
func TestServes(t *testing.T) {
	for manager, want := range map[string]bool{"linux-systemd": true, "darwin-launchd": true, "windows-service": true, "unix-systemv": false, "none": false} {
		if err := serves(manager); (err == nil) != want {
			t.Errorf("%s: %v", manager, err)
		}
	}
}
