package report

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
)

// Findings stand beside what was published of the same attack and set; what was not run says so,
// and a report that is none is an error with its name.
func TestAttacks(t *testing.T) {
	folder := fstest.MapFS{
		"attack-overfitted-membership.json": {Data: []byte(`{"audited":{"version":"v1","commit":"0123456789","base_sha256":"abcdef0123456789"},"shadows":0,"seeds":5,
"sets":[{"more_than":0,"members":194,"others":206,"attacks":[{"attack":"APK","figures":{"accuracy":0.612,"balanced_accuracy":0.61,"auc":0.654,"tpr_at_1_fpr":0.021},
"accuracy_deviation":0.0123,"intervals":{"auc":{"low":0.6,"high":0.7}},"p":0.0004}]},{"more_than":5,"members":3,"others":4,"skipped":"too few"}]}`)},
		"attack-epsilon8-memorization.json": {Data: []byte(`{"as_asked":{"Model":{"members":{"questions":7,"anls":0.5,"sure_questions":3,"sure_acc":0.75,"sure_anls":0.875},"others":{"questions":8,"anls":0.4},
"anls_difference":{"mean":0.1,"low":0.02,"high":0.18},"acc_difference":{"mean":-0.01,"low":-0.05,"high":0.03}}}}`)},
	}
	var b bytes.Buffer
	if err := attacks(&b, folder); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"base abcdef012345, build 0123456, 0 shadow models",
		"| APK | 0 | 194, 206 | 59.7 | 61.2 ± 1.2 | 61.0 | 65.4 (60.0 to 70.0) | 2.1 | 0.0004 |",
		"| too few | 5 | 3, 4 | | | | | | |",
		"document questions, LoRA, epsilon 8: **not run**",
		"| document questions, LoRA, epsilon 8 | 7, 8 | as they are | 50.0 | 40.0 | +10.0 (+2.0 to +18.0) | -1.0 (-5.0 to +3.0) | 3, 0 | 75.0, 87.5 | – |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	folder["attack-labels-membership.json"] = &fstest.MapFile{Data: []byte("{")}
	if err := attacks(&b, folder); err == nil || !strings.Contains(err.Error(), "attack-labels-membership.json") {
		t.Errorf("half a report: %v", err)
	}
}
