package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/model"
)

// report is what a finished job says of itself, for people as a table and for
// machines as JSON. Accuracies are on the test split; validation alone chose
// the rank.
type report struct {
	Task         string `json:"task"`
	Reproducible bool   `json:"reproducible"` // every secret was seeded: nothing is private

	BaseAccuracy float64            `json:"base_accuracy"`
	RankAccuracy map[string]float64 `json:"rank_accuracy"`
	RankMacroF1  map[string]float64 `json:"rank_macro_f1"`
	BestRank     int                `json:"best_rank"`
	BestAccuracy float64            `json:"best_accuracy"`
	BestMacroF1  float64            `json:"best_macro_f1"`
	// HeadOnly is a recorded figure: see headOnlyRecords. nil where this task
	// was never measured.
	HeadOnly        *float64 `json:"head_only_accuracy"`
	HeadOnlyMacroF1 *float64 `json:"head_only_macro_f1"`

	EpsilonSimulated *float64 `json:"epsilon_simulated"` // nil in a reproducible run
	EpsilonDelivered *float64 `json:"epsilon_delivered"`
	EpsilonVisible   *float64 `json:"epsilon_visible,omitempty"` // delivered, against those who see who took part
	Simulated        string   `json:"guarantee_simulated,omitempty"`
	Delivered        string   `json:"guarantee_delivered,omitempty"`
	Visible          string   `json:"guarantee_visible,omitempty"`

	// ClipNorm is that after the last round where it adapts; nil where it stays.
	ClipNorm *float64 `json:"clip_norm,omitempty"`

	Rounds     int     `json:"rounds"`
	Devices    int     `json:"devices"`
	Dropped    int     `json:"dropped"` // device-rounds lost
	BytesUp    float64 `json:"bytes_up_per_device_round"`
	BytesDown  float64 `json:"bytes_down_per_device_round"`
	Seconds    float64 `json:"seconds"`
	Checkpoint string  `json:"checkpoint"`

	majority float64   // share of the commonest label in the test split
	ranks    []int     // in the order of the table
	chosenBy []float64 // validation accuracy, same order
	clipNorm float64   // of the first round
}

// jobLayout is the layout of a job's adapter over a base.
func jobLayout(job coordinator.Job, b *model.Base) (*model.Layout, error) {
	return model.NewLayout(b.Config, model.LoRA{RMax: job.Adapter.RankMax, Alpha: job.Adapter.Alpha}, len(job.Labels))
}

// measure scores the released adapter: every rank on both splits.
func (r *report) measure(ctx context.Context, job coordinator.Job, layout *model.Layout, result coordinator.Result, validation, test *evaluator) error {
	first, last := job.Adapter.RankMin, job.Adapter.RankMax
	if job.Adapter.HeadOnly {
		first, last = 0, 0
	}
	r.RankAccuracy, r.RankMacroF1 = map[string]float64{}, map[string]float64{}
	best := -1.0
	for b := first; b <= last; b++ {
		chosen, err := validation.score(ctx, result.Adapter, b)
		if err != nil {
			return err
		}
		tested, err := test.score(ctx, result.Adapter, b)
		if err != nil {
			return err
		}
		name := strconv.Itoa(b)
		r.RankAccuracy[name], r.RankMacroF1[name] = tested.Accuracy, tested.MacroF1
		r.ranks, r.chosenBy = append(r.ranks, b), append(r.chosenBy, chosen.Accuracy)
		if chosen.Accuracy > best {
			best, r.BestRank, r.BestAccuracy, r.BestMacroF1 = chosen.Accuracy, b, tested.Accuracy, tested.MacroF1
		}
	}
	untouched, err := test.score(ctx, model.NewAdapter(layout, 0), 0)
	if err != nil {
		return err
	}
	r.BaseAccuracy, r.majority = untouched.Accuracy, test.majority()
	return nil
}

// settle takes over what the coordinator says of the job.
func (r *report) settle(job coordinator.Job, result coordinator.Result) {
	r.Rounds, r.Dropped, r.Checkpoint = result.Rounds, result.Dropped, result.Checkpoint
	r.BytesUp, r.BytesDown = result.BytesUpPerDeviceRound, result.BytesDownPerDeviceRound
	r.Reproducible = !result.Private
	if result.Private {
		r.Simulated, r.EpsilonSimulated = reported(result.Simulated)
		r.Delivered, r.EpsilonDelivered = reported(result.Delivered)
		r.Visible, r.EpsilonVisible = reported(result.Visible)
	}
	if job.Clipping.Adaptive {
		r.ClipNorm = &result.ClipNorm
		r.clipNorm = job.Privacy.ClipNorm
	}
}

func reported(g *dp.Guarantee) (string, *float64) {
	if g == nil {
		return "", nil
	}
	return g.String(), &g.Epsilon
}

// majority is the accuracy of always saying the commonest label.
func (e *evaluator) majority() float64 {
	count := make([]int, e.classes)
	most := 0
	for _, l := range e.labels {
		count[l]++
		most = max(most, count[l])
	}
	return float64(most) / float64(len(e.labels))
}

func (r report) print(w io.Writer) error {
	var b strings.Builder
	if len(r.ranks) > 0 {
		r.printAccuracy(&b)
	}
	if r.Reproducible {
		b.WriteString("Not private: --reproducible seeds every secret, so no epsilon holds.\n")
	} else {
		fmt.Fprintf(&b, "Simulated  %s\nDelivered  %s\n", orNone(r.Simulated), orNone(r.Delivered))
		if r.Visible != "" {
			fmt.Fprintf(&b, "Visible    %s\nDelivered is for those who do not see who takes part. Shard peers and the network do: for them it is Visible.\n", r.Visible)
		}
		if r.Simulated != "" {
			b.WriteString("The budget applies to the simulated guarantee: the noise is what a cohort of the simulated size would add,\nscaled to the devices that took part here. These devices themselves got the delivered one.\n")
		}
		b.WriteString("Either protects against whoever sees released adapters; secure aggregation keeps single updates from the coordinator.\n")
	}
	fmt.Fprintf(&b, "\n%d rounds, %d devices, %d device-rounds dropped, %.1f s\n", r.Rounds, r.Devices, r.Dropped, r.Seconds)
	if r.ClipNorm != nil {
		fmt.Fprintf(&b, "Clip norm: %.4g in the first round, %.4g after the last\n", r.clipNorm, *r.ClipNorm)
	}
	fmt.Fprintf(&b, "Each device and round: %s up, %s down\n", byteText(int64(r.BytesUp)), byteText(int64(r.BytesDown)))
	fmt.Fprintf(&b, "Files: %s\n", r.Checkpoint)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r report) printAccuracy(b *strings.Builder) {
	row := func(name string, accuracy, f1 *float64, note string) {
		cells := [2]string{"–", "–"}
		for i, v := range []*float64{accuracy, f1} {
			if v != nil {
				cells[i] = fmt.Sprintf("%.1f %%", 100**v)
			}
		}
		fmt.Fprintf(b, "  %-30s %10s %10s  %s\n", name, cells[0], cells[1], note)
	}
	fmt.Fprintf(b, "\nResult on the test split of %s\n\n  %-30s %10s %10s\n", r.Task, "", "accuracy", "macro-F1")
	row("commonest label", &r.majority, nil, "")
	row("untouched base", &r.BaseAccuracy, nil, "")
	if r.HeadOnly != nil {
		row("head only", r.HeadOnly, r.HeadOnlyMacroF1, "measured once under these settings; make bench remakes it")
	}
	for i, rank := range r.ranks {
		name := strconv.Itoa(rank)
		accuracy, f1 := r.RankAccuracy[name], r.RankMacroF1[name]
		note := fmt.Sprintf("validation %.1f %%", 100*r.chosenBy[i])
		if rank == r.BestRank {
			note += "  <- chosen by validation"
		}
		label := "adapter at rank " + name
		if rank == 0 {
			label = "head only, this run"
		}
		row(label, &accuracy, &f1, note)
	}
	b.WriteString("\n")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
