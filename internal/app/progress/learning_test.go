package progress

import (
	"strings"
	"testing"
)

func TestLearningIsSaid(t *testing.T) {
	say := func(l Learning, accuracies ...float64) (said []string) {
		for i, a := range accuracies {
			if s := l.observe(i+1, a); s != "" {
				said = append(said, s)
			}
		}
		return said
	}
	job := Learning{majority: 0.5, texts: 400, rounds: 12}
	if said := say(job, 0.5, 0.52, 0.49, 0.51, 0.53, 0.5); len(said) != 1 || !strings.Contains(said[0], "not learning") || !strings.Contains(said[0], "50.0 %") {
		t.Errorf("at the commonest label: %q", said)
	}
	// 76 % from the third round on, as a rate far too high gives. What is said is of the
	// round that it names; a best that is none but by chance does not have it said again.
	if said := say(job, 0.6, 0.7, 0.76, 0.75, 0.765, 0.75, 0.76, 0.75, 0.755, 0.768, 0.76, 0.75, 0.76, 0.75); len(said) != 1 ||
		!strings.Contains(said[0], "no rise in the last 4 rounds (best 76.5 %, after round 5)") {
		t.Errorf("standing still: %q", said)
	}
	if said := say(job, 0.55, 0.62, 0.7, 0.74, 0.8, 0.83, 0.86, 0.88, 0.91, 0.93); len(said) != 0 {
		t.Errorf("rising: %q", said)
	}
	// Each step is far below a standard error of 2 %, and five together are.
	if said := say(job, 0.70, 0.78, 0.802, 0.804, 0.803, 0.807, 0.806, 0.81, 0.812, 0.811, 0.811, 0.813); len(said) != 0 {
		t.Errorf("rising slowly: %q", said)
	}
	// It stood still, rose, and stands still again: that is said again.
	if said := say(job, 0.6, 0.7, 0.7, 0.7, 0.7, 0.7, 0.8, 0.8, 0.79, 0.8, 0.79); len(said) != 2 ||
		!strings.Contains(said[1], "(best 80.0 %, after round 7)") {
		t.Errorf("standing still twice: %q", said)
	}
	// It diverges: said once. One bad rank, or several that are not far below, are nothing.
	if said := say(Learning{majority: 0.1, texts: 400, rounds: 30}, 0.6, 0.7, 0.8, 0.82, 0.4, 0.3, 0.2, 0.12, 0.1, 0.11); len(said) != 1 ||
		!strings.Contains(said[0], "82.0 % after round 4") || !strings.Contains(said[0], "Training may diverge") {
		t.Errorf("diverging: %q", said)
	}
	if said := say(Learning{majority: 0.1, texts: 400, rounds: 40}, 0.6, 0.7, 0.82, 0.5, 0.8, 0.5, 0.5, 0.5, 0.81, 0.7, 0.69, 0.7, 0.71); strings.Contains(strings.Join(said, ""), "fallen") {
		t.Errorf("ranks that differ: %q", said)
	}
	var none *Learning
	if said := none.observe(1, 0.5); said != "" {
		t.Errorf("without validation: %q", said)
	}
}
