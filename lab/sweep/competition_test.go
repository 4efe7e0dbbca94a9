package sweep

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/simulate"
)

// The competition's own counts (000, appendix C.1). "36 (layers) x 2 (query and value) x 2 (A and B) x
// 768 x r" values of LoRA; its "Base" is the spatial encoder of 2.16M, two tables of 1,024 coordinates,
// a norm, and a map with its bias, and the visual embedding's head of .59M, such a map. All messages
// are those of C clients up and down in R rounds.
const (
	paperLoRA    = 36 * 2 * 2 * 768 * 6
	paperSpatial = 2*1024*768 + 2*768 + 768*768 + 768
	paperVisual  = 768*768 + 768
	paperTuned   = paperLoRA + paperSpatial + paperVisual
)

// What T5-base is made of (Raffel et al. 2020): a table of 32,128 words, 12 blocks with 4 square maps
// and a feed-forward of 3,072, 12 more with 8, a norm for each sublayer and each stack, and in
// each stack 32 distances of 12 heads.
const (
	t5Words = 32128 * 768
	t5Base  = t5Words + 12*(4*768*768+2*768*3072+2*768) + 12*(8*768*768+2*768*3072+3*768) + 2*768 + 2*32*12
)

// What all messages of the competition's first track hold over a base of VT5's size, counted by the
// layout, equals the count of 000 to the byte, and that equals what 000 prints as far as it is
// rounded there. Of the whole model 000 prints three counts that do not agree: 250M of
// 32 bits, 1.11 GB a message (1.12 in A.4.1), and 44.65 GB (44.66) of 40 messages, which is 279.1M
// values; here it is T5-base's own count and the two modules', 225.7M, with each tensor once.
func TestCompetitionsBytes(t *testing.T) {
	c := visualT5(t)
	_, p, err := Preset("paper000-track1")
	ok(t, err)
	want := map[string]struct {
		values, messages int
		bits             float64
		all              int     // bytes
		message, printed float64 // bytes as 000 prints them; 0 where it has another count
		digits           [2]float64
	}{
		"0 baseline":   {t5Base + paperSpatial + paperVisual, 2 * 2 * 10, 32, 36_105_461_760, 0, 0, [2]float64{}},
		"1 LoRA":       {paperTuned, 2 * 2 * 7, 32, 382_943_232, 13.7e6, 380e6, [2]float64{0.1e6, 10e6}},
		"2 and tuned":  {paperTuned, 2 * 1 * 2, 32, 54_706_176, 13.7e6, 55e6, [2]float64{0.1e6, 1e6}},
		"3 and NF4":    {paperTuned, 2 * 1 * 2, 4.5, 7_693_056, 1.92e6, 7.7e6, [2]float64{0.01e6, 0.1e6}},
		"4 FedShampoo": {t5Base - t5Words + paperSpatial + paperVisual, 2 * 2 * 3, 32, 9_647_271_936, 0, 0, [2]float64{}},
	}
	seen := map[string]bool{}
	for _, at := range p.Points {
		j, err := at.Settings.JobOf("documents", nil)
		ok(t, err)
		j = j.ForBase(c)
		l, err := model.NewLayout(c, j.Method(), 0)
		ok(t, err)
		row := at.On["row"]
		w := want[row]
		seen[row] = true
		n, messages := l.Size(j.Adapter.RankMax), 2*at.Settings.Cohort*j.Rounds
		if n != w.values || messages != w.messages {
			t.Errorf("%s: %d values in %d messages, want %d in %d", row, n, messages, w.values, w.messages)
		}
		message := float64(n) * w.bits / 8
		if all := message * float64(messages); all != float64(w.all) || w.printed > 0 && (math.Abs(all-w.printed) > w.digits[1]/2 || math.Abs(message-w.message) > w.digits[0]/2) {
			t.Errorf("%s: messages of %.0f bytes, %.0f in all by 000's equations, want %d; it prints %.3g and %.3g", row, message, all, w.all, w.message, w.printed)
		}
		// What bytes.csv says of such a run, by the encodings that its job names.
		wire := j.Wire
		if at.Settings.Unclipped { // as simulations have it
			wire.Uplink = "fixed32"
		}
		var rounds []simulate.Round
		for i := range j.Rounds {
			rounds = append(rounds, simulate.Round{Number: i + 1, Cohort: at.Settings.Cohort, Values: l.Size(j.Adapter.RankMax)})
		}
		if got := bytesOf(t, rounds, wire); got != w.all {
			t.Errorf("%s: bytes.csv has %d bytes of values, want %d", row, got, w.all)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("rows %v", seen)
	}
	// Thirty rounds of the second track's winner move no more than five of its baseline.
	_, p, err = Preset("paper000-track2")
	ok(t, err)
	moved := map[string]int{}
	for _, at := range p.Points {
		j, err := at.Settings.JobOf("documents", nil)
		ok(t, err)
		j = j.ForBase(c)
		l, err := model.NewLayout(c, j.Method(), 0)
		ok(t, err)
		moved[at.On["method"]] = j.Rounds * l.Size(j.Adapter.RankMax)
	}
	if moved["LoRA"] != 30*3_419_136 || moved["LoRA"] > moved["baseline"] {
		t.Errorf("values of all rounds: %v", moved)
	}
}

// bytesOf adds up bytes.csv: messages by the bytes of their values.
func bytesOf(t *testing.T, rounds []simulate.Round, w job.Wire) (all int) {
	t.Helper()
	text, err := bytesTable(rounds, w)
	ok(t, err)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	ok(t, err)
	for _, r := range rows[1:] {
		messages, err := strconv.Atoi(r[slices.Index(rows[0], "messages")])
		ok(t, err)
		values, err := strconv.Atoi(r[slices.Index(rows[0], "values_bytes")])
		ok(t, err)
		all += messages * values
	}
	return all
}

// The presets of privacy-aware DocVQA have the noise of the paper's table 12, which PRV calibrated, and its messages the bytes
// of the competition's baseline, in each round and client.
func TestPrivacyAwareNoiseAndBytes(t *testing.T) {
	c := visualT5(t)
	_, p, err := Preset("paper001-table6")
	ok(t, err)
	published := map[string]float64{"VT5 C+DP 1": 3.32031250, "VT5 C+DP 4": 1.25244140625, "VT5 C+DP 8": 0.83251953125, "VT5 FL+DP 8": 0.771484375}
	moved := map[string]float64{}
	for _, at := range p.Points {
		if at.Settings.Seed != 1 {
			continue
		}
		j, err := at.Settings.JobOf("documents", nil)
		ok(t, err)
		j = j.ForBase(c)
		l, err := model.NewLayout(c, j.Method(), 0)
		ok(t, err)
		row := at.On["row"]
		moved[row] = 2 * float64(at.Settings.Cohort*j.Rounds) * 4 * float64(l.Size(0))
		want, drawn := published[row]
		if !drawn {
			continue
		}
		delete(published, row)
		z, err := accounting.CalibrateEvent(j.Privacy.Epsilon, j.Privacy.Delta, dp.Tight, j.Observer(), j.BudgetRounds(job.Quorum{}))
		if err != nil || z > want || z < 0.985*want {
			t.Errorf("%s: noise multiplier %v, published %v, %v", row, z, want, err)
		}
	}
	if len(published) > 0 {
		t.Errorf("no row has %v", published)
	}
	if fl := moved["VT5 FL"]; fl != 36_105_461_760 || moved["VT5 FL+DP 8"] != 5*fl { // the competition's baseline's
		t.Errorf("bytes %v", moved)
	}
	_, small, err := Preset("paper001-table6-small")
	ok(t, err)
	for _, at := range small.Points {
		if pooled := strings.HasPrefix(at.On["row"], "VT5 0") || at.On["row"] == "VT5 C"; pooled != at.Settings.Pooled {
			t.Errorf("%s: pooled is %v", at.On["row"], at.Settings.Pooled)
		}
	}
}

// visualT5 is the competition's VT5-base.
func visualT5(t *testing.T) model.Config {
	t.Helper()
	c, err := model.ParseConfig([]byte(`{"model_type":"t5","d_model":768,"d_ff":3072,"num_layers":12,"num_heads":12,"max_2d_position_embeddings":1024,
		"visual_module_config":{"model":"dit","model_weights":"microsoft/dit-base-finetuned-rvlcdip"}}`))
	ok(t, err)
	return c
}
