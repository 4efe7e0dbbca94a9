package mutant

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

const records = `# about sums
file: sum/sum.go
test: ./sum TestSum

name: M1 the last one is left out
in: func Sum(
-	for _, v := range x {
+	for _, v := range x[:len(x)-1] {

name: M2 two lines become one
-	s := 0
-	for
+	s := 1; for

test: ./sum TestOther
name: M3 a line goes
in: func Twice(
-	s *= 2
`

func TestRead(t *testing.T) {
	got, err := Read("sums", strings.NewReader(records))
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{"M1 the last one is left out", "sum/sum.go", "func Sum(", "\tfor _, v := range x {", "\tfor _, v := range x[:len(x)-1] {", Test{"./sum", "TestSum"}},
		{"M2 two lines become one", "sum/sum.go", "", "\ts := 0\n\tfor", "\ts := 1; for", Test{"./sum", "TestSum"}},
		{"M3 a line goes", "sum/sum.go", "func Twice(", "\ts *= 2", "", Test{"./sum", "TestOther"}},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{
		"name: x\n-a\n+b\n":                       "no file",
		"file: f\ntest: ./p T\nname: x\n+b\n":     "no old text",
		"file: f\ntest: ./p T\n-a\n+b\n":          "no name",
		"file: f\ntest: ./p T\nname: x\n-a\n+a\n": "changes nothing",
		"file: f\ntest: ./p\n":                    "want a package",
		"file: f\ntest: ./p T\nname: x\n+b\n-a\n": "behind new",
		"nmae: x\n": "not a key",
		"file: f\ntest: ./p T\nname: x\nname: y\n-a\n+b\n": "no old text",
	} {
		if _, err := Read("f", strings.NewReader(text)); !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestApply(t *testing.T) {
	const text = "func A() {\n\tx := 1\n}\n\nfunc B() {\n\tx := 1\n\ty := 2\n}\n"
	got, err := Record{In: "func B(", Old: "x := 1", New: "x := 3"}.Apply(text)
	if want := "func A() {\n\tx := 1\n}\n\nfunc B() {\n\tx := 3\n\ty := 2\n}\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, r := range []Record{
		{Old: "x := 1"},                   // twice
		{Old: "x := 9"},                   // never
		{Old: "y := 2", In: "func A("},    // elsewhere
		{Old: "x := 1", In: "func C() {"}, // in nothing
	} {
		if _, err := r.Apply(text); !errors.Is(err, ErrApply) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// A module of two functions, of which the tests hold one.
func module(t *testing.T) string {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module example.com/m\n\ngo 1.25\n",
		"sum/sum.go": "package sum\n\nfunc Sum(x []int) int {\n\ts := 0\n\tfor _, v := range x {\n\t\ts += v\n\t}\n\treturn s\n}\n\nfunc Twice(s int) int {\n\ts *= 2\n\treturn s\n}\n",
		"sum/sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum([]int{1, 2}) != 3 {\n\t\tt.Error(\"no\")\n\t}\n}\n\n" +
			"func TestOther(t *testing.T) { Twice(1) }\n\nfunc TestFails(t *testing.T) { t.Error(\"always\") }\n",
	} {
		at := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestTry(t *testing.T) {
	root := module(t)
	ctx := watchdog.Context(t)
	rs, err := Read("sums", strings.NewReader(records))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Verdict{Killed, Killed, Alive} {
		if v, out, err := rs[i].Try(ctx, root); err != nil || v != want {
			t.Errorf("%s: %v, %v\n%s", rs[i].Name, v, err, out)
		}
	}
	broken := rs[0]
	broken.New = "\tfor {{{"
	if _, _, err := broken.Try(ctx, root); !errors.Is(err, ErrRun) {
		t.Errorf("one that does not build: %v", err)
	}
	nowhere := rs[0]
	nowhere.Test.Run = "TestNone"
	if _, _, err := nowhere.Try(ctx, root); !errors.Is(err, ErrRun) {
		t.Errorf("no test: %v", err)
	}
	gone := rs[0]
	gone.File = "sum/gone.go"
	if _, _, err := gone.Try(ctx, root); !errors.Is(err, ErrApply) {
		t.Errorf("no file: %v", err)
	}
	if err := (Test{"./sum", "TestSum"}).Passes(ctx, root); err != nil {
		t.Error(err)
	}
	if err := (Test{"./sum", "TestFails"}).Passes(ctx, root); !errors.Is(err, ErrRun) {
		t.Errorf("a test that fails by itself: %v", err)
	}
}
