package job

import (
	"fmt"
	"strings"

	"github.com/starling-fl/starling/model"
)

// Method is what the job trains.
func (j Job) Method() model.Method {
	a := j.Adapter
	kind, err := model.ParseTask(j.Task)
	if err != nil {
		kind = model.TaskKind(j.Task) // which nothing takes
	}
	scaling, err := model.ParseScaling(a.Scale)
	if err != nil {
		scaling = model.Scaling(a.Scale) // which nothing takes
	}
	return model.Method{Task: kind, RMax: a.RankMax, Bottleneck: a.Bottleneck, Blocks: a.Blocks, Alpha: a.Alpha, Scaling: scaling, Kind: model.MethodKind(a.Method),
		Targets: strings.Join(a.Targets, ","), Also: strings.Join(a.Also, ","), Answer: a.Answer, Objectives: strings.Join(a.Objectives, ",")}
}

// baseNF4 is the base_format that packs.
const baseNF4 = "nf4"

// OpenBase returns the base in the form that the job asks for, in which devices train and
// evaluators measure.
func (j Job) OpenBase(b *model.Base) (*model.Base, error) {
	if j.BaseFormat != baseNF4 {
		return b, nil
	}
	packed, err := b.Pack()
	if err != nil {
		return nil, refuse("base_format nf4: %w", err)
	}
	return packed, nil
}

// CheckBase returns an error if the base is not the one that the job asks for.
func (j Job) CheckBase(b *model.Base) error {
	if j.BaseFormat == baseNF4 && !b.Packed() {
		return refuse("base_format is nf4, but the base's matrices are not 4-bit codes")
	}
	if j.BaseSHA256 == "" {
		return nil
	}
	sum, err := b.SHA256()
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", sum); got != j.BaseSHA256 {
		return refuse("base_sha256 is %s, but the base is %s", j.BaseSHA256, got)
	}
	return nil
}

// Ranks lists the ranks that a round may draw: only 0 if the method has none.
func (j Job) Ranks() []int {
	if j.Adapter.HeadOnly || !j.Method().Ranked() {
		return []int{0}
	}
	var ranks []int
	for b := j.Adapter.RankMin; b <= j.Adapter.RankMax; b++ {
		if w := j.Adapter.RankWeights; len(w) > 0 && b-j.Adapter.RankMin < len(w) && w[b-j.Adapter.RankMin] == 0 {
			continue
		}
		ranks = append(ranks, b)
	}
	if len(ranks) == 0 { // weights of 0 alone, which Validate refuses
		return []int{j.Adapter.RankMax}
	}
	return ranks
}

// validateMethod checks what needs no base.
func (j Job) validateMethod() error {
	a := j.Adapter
	if _, err := model.ParseTask(j.Task); err != nil {
		return refuse("task is %.40q, must be one of %q", j.Task, model.TaskNames())
	}
	m := model.Method{Kind: model.MethodKind(a.Method)}
	switch {
	case !m.Kind.Known():
		return refuse("adapter.method is %.40q, must be one of %q", a.Method, model.MethodNames())
	case !m.Ranked() && len(a.Targets) > 0:
		return refuse("adapter.targets are given, but adapter.method %s has none", m.Kind)
	}
	if err := j.validateRanks(); err != nil {
		return err
	}
	if a.HeadOnly && (a.Method != "" && a.Method != string(model.MethodHead) || len(a.Also) > 0) {
		return refuse("adapter.head_only is set: adapter.method and adapter.also then have no meaning")
	}
	for key, list := range map[string][]string{"targets": a.Targets, "also": a.Also} {
		for _, n := range list {
			if n == "" || strings.ContainsAny(n, ", ") {
				return refuse("adapter.%s has the name %.80q", key, n)
			}
		}
	}
	return nil
}
