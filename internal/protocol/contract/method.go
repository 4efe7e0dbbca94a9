package contract

import (
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
)

// Method reads what devices train from what the coordinator announced. It errs where there is no
// task of the name; the rest Method.Validate checks, over a base.
func Method(j *wire.Job) (model.Method, error) {
	kind, err := model.ParseTask(j.Task)
	if err != nil {
		return model.Method{}, err
	}
	return model.Method{Task: kind, RMax: int(j.RankMax), Alpha: j.Alpha, Scaling: model.Scaling(j.Scale), Kind: model.MethodKind(j.Method),
		Targets: j.Targets, Also: j.Also, Bottleneck: int(j.Bottleneck), Blocks: int(j.Blocks), Answer: int(j.Answer), Objectives: j.Objectives}, nil
}

// AnnounceMethod writes a method into the announcement: the inverse of Method.
func AnnounceMethod(m model.Method, to *wire.Job) {
	to.Task, to.RankMax, to.Alpha, to.Scale, to.Method = string(m.Task), uint16(m.RMax), m.Alpha, string(m.Scaling), string(m.Kind)
	to.Targets, to.Also, to.Objectives = m.Targets, m.Also, m.Objectives
	to.Bottleneck, to.Blocks, to.Answer = uint32(m.Bottleneck), uint32(m.Blocks), uint32(m.Answer)
}
