package partition

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

// Nobody stands in two parts, by whatever ties them, and every example in one.
func TestSplitWholeKeepsOwnersApart(t *testing.T) {
	for seed := range uint64(20) {
		s := &dataset.Set{Labels: []string{"x"}}
		for i := range 600 {
			e := dataset.Example{Text: fmt.Sprint(i)}
			switch i % 3 {
			case 0:
				e.User = fmt.Sprint("u", i/6)
			case 1:
				e.User, e.Provider = fmt.Sprint("u", i/6), fmt.Sprint("p", i/60) // ties several users
			case 2:
				e.Provider = fmt.Sprint("p", i/60)
			}
			s.Examples = append(s.Examples, e)
		}
		s.Examples = append(s.Examples, dataset.Example{Text: "nobody's"})
		for _, owner := range []Owner{OwnerBoth, OwnerUser, OwnerProvider, OwnerGroup} {
			parts, err := SplitWhole(s, owner, seed, 0.8, 0.1, 0.1)
			if err != nil {
				t.Fatalf("%s: %v", owner, err)
			}
			in := map[string]int{}
			n := 0
			for p, part := range parts {
				n += len(part.Examples)
				if share := float64(len(part.Examples)) / 601; math.Abs(share-[]float64{0.8, 0.1, 0.1}[p]) > 0.2 {
					t.Errorf("%s: part %d has %.2f", owner, p, share)
				}
				for _, e := range part.Examples {
					var keys []string
					switch owner {
					case OwnerBoth:
						keys = []string{"user" + e.User, "provider" + e.Provider}
					case OwnerUser:
						keys = []string{"user" + e.User}
					case OwnerProvider:
						keys = []string{"provider" + e.Provider}
					case OwnerGroup:
						keys = []string{"user" + e.Group()}
					}
					for _, k := range keys {
						if was, seen := in[k]; k != "user" && k != "provider" && seen && was != p {
							t.Fatalf("%s: %q is in parts %d and %d", owner, k, was, p)
						}
						in[k] = p
					}
				}
			}
			if n != len(s.Examples) {
				t.Errorf("%s: %d examples of %d", owner, n, len(s.Examples))
			}
		}
	}
}

func TestSplitWholeRefuses(t *testing.T) {
	one := labelled100(2)
	for i := range one.Examples {
		one.Examples[i].User = "the only one"
	}
	if _, err := SplitWhole(one, OwnerUser, 1, 0.8, 0.1, 0.1); !errors.Is(err, ErrCoarse) {
		t.Errorf("one user: %v", err)
	}
	for _, f := range [][]float64{{0.5, 0.4}, {1, 0}, {0.9, 0.2}, {1.5, -0.5}} {
		if _, err := SplitWhole(one, OwnerProvider, 1, f...); err == nil {
			t.Errorf("fractions %v were taken", f)
		}
	}
}

func TestFillEmpty(t *testing.T) {
	parts := [][]int{{}, {1, 2, 3}, {}, {4}}
	if n := FillEmpty(parts); n != 2 || fmt.Sprint(parts) != "[[3] [1] [2] [4]]" {
		t.Errorf("%d filled: %v", n, parts)
	}
	if parts := [][]int{{}, {1}}; FillEmpty(parts) != 0 || len(parts[1]) != 1 {
		t.Errorf("too few: %v", parts)
	}
}

// One user with most of the examples leaves the others to train, too.
func TestSplitWholeOfSkewedUsers(t *testing.T) {
	s := &dataset.Set{Labels: []string{"x"}}
	for u := range 30 {
		for range map[bool]int{true: 2000, false: 20}[u == 0] {
			s.Examples = append(s.Examples, dataset.Example{Text: "a", User: fmt.Sprint(u)})
		}
	}
	for seed := range uint64(20) {
		parts, err := SplitWhole(s, OwnerUser, seed, 0.8, 0.1, 0.1)
		if err != nil {
			t.Fatal(err)
		}
		var users []int
		for _, p := range parts {
			of := map[string]bool{}
			for _, e := range p.Examples {
				of[e.User] = true
			}
			users = append(users, len(of))
		}
		if users[0] < 18 || users[1] < 2 || users[2] < 2 {
			t.Errorf("seed %d: %v users in the parts", seed, users)
		}
	}
}
