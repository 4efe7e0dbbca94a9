package pretraining

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// FitPooler returns the pooler's weight [h,h] and bias [h] that whiten the
// mean-pooled states of the given rows: y = (C + ridge*tr(C)/h*I)^-1/2 (x - mean),
// the symmetric (ZCA) root. Untrained features of a small encoder share a large
// common part and a few strong directions; a linear head learns in few steps
// only once they are removed, and nothing but public text is needed for that.
func FitPooler(ctx context.Context, be compute.Backend, c model.Config, tensors []model.Tensor, rows [][]int32, ridge float64) (weight, bias model.Tensor, err error) {
	feats, err := pooledStates(ctx, be, c, tensors, rows)
	if err != nil {
		return weight, bias, err
	}
	h := c.HiddenSize
	mean := make([]float64, h)
	for _, f := range feats {
		for i, x := range f {
			mean[i] += float64(x) / float64(len(feats))
		}
	}
	cov := mat.NewSymDense(h, nil)
	centred := make([]float64, h)
	for _, f := range feats {
		for i, x := range f {
			centred[i] = float64(x) - mean[i]
		}
		cov.SymRankOne(cov, 1/float64(len(feats)), mat.NewVecDense(h, centred))
	}
	floor := ridge * mat.Trace(cov) / float64(h)
	var eig mat.EigenSym
	if !eig.Factorize(cov, true) {
		return weight, bias, fmt.Errorf("pretraining: the pooled states' covariance has no eigendecomposition")
	}
	var vec mat.Dense
	eig.VectorsTo(&vec)
	root := mat.NewDense(h, h, nil)
	scaled := mat.DenseCopyOf(&vec)
	for j, v := range eig.Values(nil) {
		f := 1 / math.Sqrt(math.Max(v, 0)+floor+1e-12)
		for i := range h {
			scaled.Set(i, j, vec.At(i, j)*f)
		}
	}
	root.Mul(scaled, vec.T())
	weight = model.Tensor{Name: "pooler.dense.weight", Shape: []int{h, h}, Data: make([]float32, h*h)}
	bias = model.Tensor{Name: "pooler.dense.bias", Shape: []int{h}, Data: make([]float32, h)}
	for i := range h {
		shift := 0.0
		for j := range h {
			weight.Data[i*h+j] = float32(root.At(i, j))
			shift -= root.At(i, j) * mean[j]
		}
		bias.Data[i] = float32(shift)
	}
	return weight, bias, nil
}

// poolerBatch is how many rows are pooled at once.
const poolerBatch = 16

// pooledStates runs the encoder and returns the masked mean of each row.
func pooledStates(ctx context.Context, be compute.Backend, c model.Config, tensors []model.Tensor, rows [][]int32) ([][]float32, error) {
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: no rows to fit the pooler on", ErrCorpus)
	}
	seq := len(rows[0])
	prog, err := nn.Compile(be, "pooled", nn.PooledStates(c, poolerBatch, seq))
	if err != nil {
		return nil, err
	}
	byName := map[string]model.Tensor{}
	for _, t := range tensors {
		byName[t.Name] = t
	}
	buffers := make([]compute.Buffer, len(prog.Params))
	for i, p := range prog.Params[1:] {
		t, ok := byName[p.Name]
		if !ok {
			return nil, &model.ShapeError{Tensor: p.Name, Want: p.Shape}
		}
		if buffers[i+1], err = prog.Buffer(p, t.Data); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, 0, len(rows))
	for len(rows) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now := rows[:min(poolerBatch, len(rows))]
		rows = rows[len(now):]
		flat := make([]int32, poolerBatch*seq)
		for i, r := range now {
			if len(r) != seq {
				return nil, fmt.Errorf("%w: a row has %d tokens, want %d", ErrCorpus, len(r), seq)
			}
			copy(flat[i*seq:], r)
		}
		if buffers[0], err = prog.Buffer(prog.Params[0], flat); err != nil {
			return nil, err
		}
		res, err := prog.Run(buffers)
		if err != nil {
			return nil, err
		}
		v, err := nn.Floats(res[0], poolerBatch*c.HiddenSize)
		if err != nil {
			return nil, err
		}
		for i := range now {
			out = append(out, v[i*c.HiddenSize:(i+1)*c.HiddenSize])
		}
	}
	return out, nil
}
