package participation

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/starling-fl/starling/edge"
)

// The example says what the defaults are.
func TestExamplePolicyIsTheDefault(t *testing.T) {
	got, err := loadPolicy(filepath.Join("..", "..", "..", "examples", "policy.yaml"), edge.Policy{})
	if err != nil || !reflect.DeepEqual(got, edge.DefaultPolicy()) {
		t.Errorf("%+v\nwant %+v: %v", got, edge.DefaultPolicy(), err)
	}
}
