package realdata

import (
	"testing"
)

// recorder stands for a test that looks for what is not there.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Skipf(string, ...any)  { r.skipped = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; r.skipped = false; panic(r) }

// A file that is not there skips a test, and fails it where data are required.
func TestAbsentDataFailWhereRequired(t *testing.T) {
	t.Setenv(Required, "")
	r := &recorder{TB: t}
	Path(r, "none/such")
	if !r.skipped || r.failed {
		t.Errorf("data that are not required: skipped %v, failed %v", r.skipped, r.failed)
	}
	t.Setenv(Required, "required")
	r = &recorder{TB: t}
	func() {
		defer func() { _ = recover() }()
		Path(r, "none/such")
	}()
	if r.skipped || !r.failed {
		t.Errorf("data that are required: skipped %v, failed %v", r.skipped, r.failed)
	}
}
