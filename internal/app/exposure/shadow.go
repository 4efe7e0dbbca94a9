package exposure

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/dp/audit/membership"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate"
)

// Files of a shadow's folder.
const (
	ShadowMembers    = "members.json"
	ShadowCheckpoint = "checkpoint"
)

// mostShadows bounds a folder of them.
const mostShadows = 1024

// Shadows adds what models of the attacker's own show of the people: each is a folder in dir with
// a checkpoint and the names of those it was trained on. It returns how many there are.
func (s *subject) Shadows(ctx context.Context, dir string, p *People, units []membership.Unit) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range entries {
		folder := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(folder, ShadowMembers)); err != nil {
			continue
		}
		if n++; n > mostShadows {
			return 0, fmt.Errorf("%s: more than %d shadows", dir, mostShadows)
		}
		in, err := readNames(filepath.Join(folder, ShadowMembers))
		if err != nil {
			return 0, err
		}
		ck, err := model.ReadCheckpoint(filepath.Join(folder, ShadowCheckpoint))
		if err != nil {
			return 0, err
		}
		if err := s.addShadow(ctx, fmt.Sprintf("examples, shadow %d", n), ck, in, p, units); err != nil {
			return 0, fmt.Errorf("%s: %w", folder, err)
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("%s: no folder with %s and %s in it: starling shadows makes them", dir, ShadowMembers, ShadowCheckpoint)
	}
	return n, nil
}

func (s *subject) addShadow(ctx context.Context, what string, ck *model.Checkpoint, in []string, p *People, units []membership.Unit) error {
	if ck.BaseSHA256 != s.Checkpoint.BaseSHA256 || ck.Method.Task != s.Checkpoint.Method.Task || !slices.Equal(ck.Labels, s.Checkpoint.Labels) {
		return fmt.Errorf("%w: a shadow model must have the same base, task and labels as the attacked model", ErrPeople)
	}
	x, err := evaluate.NewExaminer(s.Engine.Backend, ck.Base, ck.Adapter.Layout(), ck.Seq)
	if err != nil {
		return err
	}
	rank := ck.BestRank
	if rank == 0 {
		rank = ck.Method.RMax
	}
	slice := ck.Adapter.Slice(rank)
	losses, err := inChunks(s.Progress, what, p.Examples, func(some []dataset.Example) ([]float64, error) { return x.Losses(ctx, slice, rank, some) })
	if err != nil {
		return err
	}
	sum, count := map[string]float64{}, map[string]float64{}
	for i, who := range p.Owner {
		if !math.IsNaN(losses[i]) {
			sum[who] += membership.Logit(losses[i])
			count[who]++
		}
	}
	known := slices.ContainsFunc(units, func(u membership.Unit) bool { _, was := slices.BinarySearch(in, u.Name); return was })
	if !known && len(in) > 0 {
		return fmt.Errorf("%w: none of its %d members is a %s of the examples", ErrPeople, len(in), p.By)
	}
	for i := range units {
		u := &units[i]
		if count[u.Name] == 0 {
			continue
		}
		x := sum[u.Name] / count[u.Name]
		if _, was := slices.BinarySearch(in, u.Name); was {
			u.In = append(u.In, x)
		} else {
			u.Out = append(u.Out, x)
		}
	}
	return nil
}
