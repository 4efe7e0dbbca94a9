// Command silent asks on a real clock whether when a silent device says something tells of
// what its data is: fleets whose devices hold texts, one keyword, long texts, texts that
// training fails with, images where texts are wanted, and nothing, all in the same rounds of a
// real coordinator over a crafted base, so that all share one machine's moods. Of each message
// the distribution of its moments is compared with that of plain texts by Kolmogorov's and
// Smirnov's statistic, less the median of all devices in the round, as a coordinator that sees
// them all would have it. What a device's steps take is measured every sixteenth round, so that
// its moments hang together: how likely the statistic is says how often it comes as large when
// devices of one fleet exchange what they hold. It prints a table of Markdown.
//
//	go run -C lab ./bench/silent [-fleets 8] [-rounds 20] [-copies 3] [-open]
//
// With -open the devices are not silent: what the same table sees then, of the data that they
// can train on; the others say at once that they cannot.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

func main() {
	fleets := flag.Int("fleets", 8, "fleets that take part, and as many that refuse")
	rounds := flag.Int("rounds", 20, "rounds of each")
	copies := flag.Int("copies", 3, "devices of each data set in one")
	open := flag.Bool("open", false, "devices that are not silent")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *fleets, *rounds, *copies, !*open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, fleets, rounds, copies int, silent bool) error {
	if !silent {
		dataSets = dataSets[:4]
	}
	all := moments{map[key][][]float64{}, map[key][][]float64{}}
	for i := range fleets {
		for _, refuse := range []bool{false, true} {
			fmt.Fprintf(os.Stderr, "%s fleet %d of %d, refusing: %v\n", time.Now().Format(time.TimeOnly), i+1, fleets, refuse)
			if err := (&fleet{rounds: rounds, copies: copies, silent: silent, refuse: refuse, all: all}).run(ctx); err != nil {
				return err
			}
		}
	}
	fmt.Println("| message | data | devices | n | mean, ms | less the round's median | deviation of that | farthest apart from plain (D) | as far by chance | shift that 1,000 rounds see, ms |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, message := range messages {
		plain := all.less[key{message, dataSets[0].name}]
		for _, set := range dataSets {
			k := key{message, set.name}
			less := all.less[k]
			x := slices.Concat(less...)
			if len(x) < 2 || len(less) != len(plain) {
				return fmt.Errorf("%s of %s was seen %d times, of %d devices", message, set.name, len(x), len(less))
			}
			raw := stat.Mean(slices.Concat(all.seen[k]...), nil)
			mean, deviation := stat.MeanStdDev(x, nil)
			apart := " | "
			if set.name != dataSets[0].name {
				d := apartBy(slices.Concat(plain...), x)
				apart = fmt.Sprintf("%.3f | %.3f", d, chanceOf(d, plain, less, copies))
			}
			fmt.Printf("| %s | %s | %d | %d | %.1f | %.1f | %.1f | %s | %.1f |\n", message, set.name, len(less), len(x), raw, mean, deviation, apart, visible(deviation, 1000))
		}
	}
	return nil
}

// messages are those that are timed.
var messages = []string{"Ready", "update", "Refuse"}

// visible is the shift of a mean that a two-sided test at 5 % finds nine times in ten, of n
// moments on either side.
func visible(deviation float64, n int) float64 {
	const z = 1.9600 + 1.2816
	return z * deviation * math.Sqrt(2/float64(n))
}

// apartBy is Kolmogorov's and Smirnov's statistic: how far two distributions are apart.
func apartBy(x, y []float64) float64 {
	return stat.KolmogorovSmirnov(slices.Sorted(slices.Values(x)), nil, slices.Sorted(slices.Values(y)), nil)
}

// chanceOf is how often two data sets are so far apart when the devices of a fleet, of which
// there are so many copies of each set, exchange what they hold at random: the test that stays
// right though the moments of one device hang together.
func chanceOf(d float64, plain, other [][]float64, copies int) float64 {
	const tries = 2000
	as := 1
	for range tries {
		var x, y []float64
		for i := 0; i < len(plain); i += copies {
			both := slices.Concat(plain[i:i+copies], other[i:i+copies])
			rand.Shuffle(len(both), func(a, b int) { both[a], both[b] = both[b], both[a] })
			x, y = append(x, slices.Concat(both[:copies]...)...), append(y, slices.Concat(both[copies:]...)...)
		}
		if apartBy(x, y) >= d {
			as++
		}
	}
	return float64(as) / (tries + 1)
}
