package commands

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/lab/bandwidth"
)

// bandwidthCommand runs the command by itself.
func bandwidthCommand(t *testing.T, out io.Writer, args ...string) error {
	t.Helper()
	a := &command.App{Streams: terminal.Streams{Stdin: strings.NewReader(""), Stdout: out, Stderr: io.Discard, JSON: true}}
	cmd := newBandwidthCmd(a)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(t.Context())
}

// runBandwidthTest runs the command and returns its report.
func runBandwidthTest(t *testing.T, args ...string) bandwidth.Report {
	t.Helper()
	var out bytes.Buffer
	if err := bandwidthCommand(t, &out, args...); err != nil {
		t.Fatal(err)
	}
	var r bandwidth.Report
	dec := json.NewDecoder(&out)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBandwidthMeasures runs real rounds of masked and unmasked schemes and
// holds the figures against what is known of them.
func TestBandwidthMeasures(t *testing.T) {
	dir := t.TempDir()
	csvPath, plotPath := filepath.Join(dir, "rows.csv"), filepath.Join(dir, "plot")
	r := runBandwidthTest(t, "--schemes", "masked:nf4,masked:int4,masked:int5,clear:f32,clear:nf4dq", "--codecs", "zstd", "--params", "9000",
		"--cohort", "5", "--shard", "5", "--csv", csvPath, "--plot", plotPath)
	if len(r.Rows) != 5 {
		t.Fatalf("%d rows", len(r.Rows))
	}
	by := map[string]bandwidth.Row{}
	for _, x := range r.Rows {
		by[bandwidth.Scheme{Name: x.Scheme, Masked: x.Masked}.String()] = x
		p := x.Parts
		if sum := p.Vector + p.Slices + p.Keys + p.Assignment + p.Session + p.Framing + p.WebSocket; math.Abs(sum-x.BytesUp-x.BytesDown) > 1e-6*sum {
			t.Errorf("%s: parts add up to %v, the sockets carried %v", x.Scheme, sum, x.BytesUp+x.BytesDown)
		}
		if x.BytesUp <= p.Vector || math.Abs(x.Bits-8*x.BytesUp/9000) > 1e-9 || x.BytesRaw != 36000 {
			t.Errorf("%s: %+v", x.Scheme, x)
		}
		if x.Masked != (p.Keys > 0) {
			t.Errorf("%s, masked %v: keys cost %v bytes", x.Scheme, x.Masked, p.Keys)
		}
		if x.Masked && (x.Recompressed < 1 || x.Recompressed > 1.01) {
			t.Errorf("%s: masked bytes compress to %v", x.Scheme, x.Recompressed)
		}
		if x.RelativeMSE < 0 || x.RelativeMSE > 0.05 || x.Cosine < 0.97 {
			t.Errorf("%s: error %v, cosine %v", x.Scheme, x.RelativeMSE, x.Cosine)
		}
	}
	for name, ring := range map[string]int{"masked:nf4": 7, "masked:int4": 7, "masked:int5": 8} {
		x := by[name]
		if x.RingBits != ring || x.Parts.Vector < float64(x.Padded*ring)/8 || x.Parts.Vector > float64(x.Padded*ring)/8+100 {
			t.Errorf("%s: ring of %d bits, vector of %v bytes for %d coordinates", name, x.RingBits, x.Parts.Vector, x.Padded)
		}
	}
	if f := by["clear:f32"]; f.RelativeMSE > 1e-12 {
		t.Errorf("f32 errs by %v", f.RelativeMSE)
	}
	// Rounding in steps of a third makes a ninth of the error, of which clipping is a part.
	if nf4, int5 := by["masked:nf4"], by["masked:int5"]; int5.RelativeMSE > nf4.RelativeMSE/2 {
		t.Errorf("int5 errs by %v, nf4 by %v", int5.RelativeMSE, nf4.RelativeMSE)
	}

	file, err := os.Open(csvPath)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Fatalf("CSV has %d lines: %v", len(rows), err)
	}
	if got, err := strconv.ParseFloat(rows[1][9], 64); err != nil || math.Abs(got-r.Rows[0].Bits) > 1e-5 {
		t.Errorf("CSV says %v bits: %v", rows[1][9], err)
	}
	svg, err := os.ReadFile(plotPath + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", ">nf4<", ">int5<", ">nf4dq<"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("the plot lacks %q", want)
		}
	}
	raw, err := os.ReadFile(plotPath + ".png")
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(raw)); err != nil || img.Bounds().Dx() < 300 {
		t.Errorf("PNG: %v", err)
	}
	var table bytes.Buffer
	if err := r.Print(&table); err != nil || !strings.Contains(table.String(), "int5") {
		t.Errorf("table: %v\n%s", err, table.String())
	}
}

// TestBandwidthPreset checks the published arithmetic, and that ours is below
// it at no larger error than NF4's.
func TestBandwidthPreset(t *testing.T) {
	r := runBandwidthTest(t, "--preset", "docvqa-winner", "--params", "20000", "--cohort", "3", "--shard", "3", "--schemes", "clear:nf4", "--codecs", "zstd")
	want := []float64{382.9, 54.7, 7.69}
	if len(r.Published) != len(want) {
		t.Fatalf("%d published figures", len(r.Published))
	}
	for i, p := range r.Published {
		if got := p.Computed / 1e6; math.Abs(got-want[i]) > 0.05 || math.Abs(got/(p.Bytes/1e6)-1) > 0.01 {
			t.Errorf("%s: computed %.2f MB, published %.1f", p.What, got, p.Bytes/1e6)
		}
	}
	// At 4.5 bits a value, both ways, in both rounds.
	if x := r.Rows[0]; x.MBJob*1e6 > 0.95*4*20000*4.5/8 {
		t.Errorf("%v MB for the job", x.MBJob)
	}
}

func TestBandwidthRefuses(t *testing.T) {
	for _, args := range []string{
		"--preset x", "--schemes nf5", "--codecs gzip", "--downlink f64", "--params 7", "--cohort 2", "--shard 5000", "--rounds 1",
		"--clip 0", "--ranks 4", "--data x.tsv", "--train --ranks 0", "--masked-only --clear-only", "--schemes clear:f32 --masked-only",
		"--sampling-rate 0", "--epsilon -1", "--job-rounds 0", "surplus",
	} {
		var wrong usage.Error
		if err := bandwidthCommand(t, io.Discard, strings.Fields(args)...); !errors.As(err, &wrong) {
			t.Errorf("bandwidth %s: %v, want a usage error", args, err)
		}
	}
}
