package server

import (
	"testing"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// TestRoundLine: every figure of a round is under its name in the table.
func TestRoundLine(t *testing.T) {
	r := monitor.RoundRecord{
		RoundID:    monitor.RoundID{Round: 4, Version: 3, Rank: 2, ClipNorm: 1.5},
		Turnout:    monitor.Turnout{Cohort: 9, Dropped: 1, Absent: 3, Departures: monitor.Departures{Declined: 4, Stopped: 5, Refused: 6}},
		Released:   true,
		Seconds:    2.5,
		Ended:      1_800_000_000,
		Accuracy:   []metric.RankAccuracy{{Rank: 1, Accuracy: 0.25, Loss: 2}, {Rank: 2, Accuracy: 0.75, Loss: 0.5, Of: 128}, {Rank: 4, Accuracy: 0.5, Loss: 1}},
		Guarantees: dp.Guarantees{Delivered: &dp.Guarantee{Epsilon: 6, Delta: 1e-6}, Simulated: &dp.Guarantee{Epsilon: 2, Delta: 1e-6}},
		Traffic:    monitor.Traffic{BytesUp: 100, BytesDown: 200},

		SessionsRefused: 7,
		Fleet: &metric.Fleet{Rank: 2, Units: metric.Noisy{Mean: 8, Noise: 1}, Accuracy: metric.Noisy{Mean: 0.5, Noise: 0.25},
			Loss: metric.Noisy{Mean: 1, Noise: 0}, Speed: metric.Noisy{Mean: 4, Noise: 1}},
	}
	want := map[string]string{"round": "4", "version": "3", "rank": "2", "cohort": "9", "dropped": "1", "absent": "3", "released": "true", "reason": "",
		"seconds": "2.5", "ended": "2027-01-15T08:00:00Z", "clip_norm": "1.5", "accuracy": "0.75", "accuracy_rank": "2", "loss": "0.5", "epsilon_delivered": "6",
		"epsilon_simulated": "2", "delta": "1e-06", "bytes_up": "100", "bytes_down": "200", "accuracy_drawn": "0.75", "measured_on": "128",
		"declined": "4", "stopped": "5", "refused": "6", "sessions_refused": "7", "values_bytes": "44",
		"fleet_units": "8", "fleet_accuracy": "0.5", "fleet_accuracy_low": "0.01000899999999999", "fleet_accuracy_high": "0.9899910000000001",
		"fleet_loss": "1", "fleet_loss_low": "1", "fleet_loss_high": "1",
		"fleet_steps_per_second": "4", "fleet_steps_per_second_low": "4", "fleet_steps_per_second_high": "4"}
	line := roundLine(r, 11)
	if len(line) != len(roundColumns) || len(want) != len(roundColumns) {
		t.Fatalf("%d figures, %d names, %d expected", len(line), len(roundColumns), len(want))
	}
	for i, name := range roundColumns {
		if line[i] != want[name] {
			t.Errorf("%s is %q, want %q", name, line[i], want[name])
		}
	}
	r.Accuracy[1].Loss = 0 // as of an evaluator that has none
	if line := roundLine(r, 11); line[13] != "" {
		t.Errorf("no loss is %q", line[13])
	}
}
