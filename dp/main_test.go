package dp

import (
	"testing"

	"go.uber.org/goleak"
)

// Pools start goroutines; none may outlive its test.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
