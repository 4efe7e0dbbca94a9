// Command demo runs the demo several times with different data and writes a table
// of what it reached and took: means, and the least and greatest of the runs.
//
//	go run -C lab ./bench/demo [-runs 5] [-r8 ../../shared/data/r8/R8.train.txt.gz]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

func main() {
	runs := flag.Int("runs", 5, "runs of the demo as it comes; variants get fewer")
	r8 := flag.String("r8", "../../shared/data/r8/R8.train.txt.gz", "labelled file of R8; left out where it is not there")
	binary := flag.String("starling", "../bin/starling", "the program")
	flag.Parse()
	variants := []variant{
		{"invoices", *runs, nil},
		{"invoices, adaptive clip norm", min(*runs, 2), []string{"--adaptive-clip"}},
		{"invoices, a provider's presence hidden", min(*runs, 2), []string{"--privacy-unit", "provider"}},
		{"the same, adaptive clip norm", min(*runs, 2), []string{"--privacy-unit", "provider", "--adaptive-clip"}},
	}
	if _, err := os.Stat(*r8); err == nil {
		variants = append(variants, variant{"R8", min(*runs, 3), []string{"--data", *r8}})
	} else {
		fmt.Fprintln(os.Stderr, "demo: R8 is left out:", err)
	}
	fmt.Println("| data | runs | accuracy | macro-F1 | head only | processor time of a run | up, down a device and round |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	for _, v := range variants {
		if err := v.run(*binary); err != nil {
			fmt.Fprintln(os.Stderr, "demo:", err)
			os.Exit(1)
		}
	}
}

// variant is the demo with flags, a number of times, each with a seed of its own.
type variant struct {
	name string
	runs int
	args []string
}

// report is what of the demo's JSON is told here.
type report struct {
	Accuracy  float64  `json:"best_accuracy"`
	MacroF1   float64  `json:"best_macro_f1"`
	HeadOnly  *float64 `json:"head_only_accuracy"`
	BytesUp   float64  `json:"bytes_up_per_device_round"`
	BytesDown float64  `json:"bytes_down_per_device_round"`
}

func (v variant) run(binary string) error {
	dir, err := os.MkdirTemp("", "bench-demo-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var accuracy, f1, seconds, up, down []float64
	head := "-"
	for seed := 1; seed <= v.runs; seed++ {
		args := append([]string{"demo", "--json", "--out", dir, "--seed", strconv.Itoa(seed)}, v.args...)
		fmt.Fprintln(os.Stderr, binary, strings.Join(args, " "))
		cmd := exec.Command(binary, args...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
		var r report
		if err := json.Unmarshal(out, &r); err != nil {
			return fmt.Errorf("the demo's report: %w", err)
		}
		accuracy, f1 = append(accuracy, 100*r.Accuracy), append(f1, 100*r.MacroF1)
		up, down = append(up, r.BytesUp/1e3), append(down, r.BytesDown/1e3)
		seconds = append(seconds, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
		if r.HeadOnly != nil {
			head = fmt.Sprintf("%.1f %%", 100**r.HeadOnly)
		}
	}
	fmt.Printf("| %s | %d | %s %% | %s %% | %s | %s s | %.1f kB, %.1f kB |\n", v.name, v.runs, spread(accuracy), spread(f1), head,
		spread(seconds), mean(up), mean(down))
	return nil
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// spread is the mean, and the least and the greatest where there are several.
func spread(x []float64) string {
	if len(x) == 1 {
		return fmt.Sprintf("%.1f", x[0])
	}
	return fmt.Sprintf("%.1f (%.1f to %.1f)", mean(x), slices.Min(x), slices.Max(x))
}
