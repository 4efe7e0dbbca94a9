package fleetdata

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/usage"
)

// Swapped columns and a single label are wrong input, and named as what they are.
func TestLabelsThatTeachNothing(t *testing.T) {
	set := func(labels, examples int) *dataset.Set {
		s := &dataset.Set{}
		for i := range labels {
			s.Labels = append(s.Labels, fmt.Sprint("label ", i))
		}
		for i := range examples {
			s.Examples = append(s.Examples, dataset.Example{Text: "a", Label: i % labels})
		}
		return s
	}
	for _, c := range []struct {
		labels, examples int
		says             string
	}{{591, 600, "swapped"}, {1, 600, "want at least 2"}, {300, 600, ""}, {8, 10, ""}, {2, 600, ""}} {
		err := CheckLabels("f.csv", set(c.labels, c.examples))
		var wrong usage.Error
		if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || !errors.As(err, &wrong)) {
			t.Errorf("%d labels in %d examples: %v", c.labels, c.examples, err)
		}
	}
}
