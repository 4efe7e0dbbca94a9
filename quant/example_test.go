package quant_test

import (
	"crypto/rand"
	"fmt"
	"math"

	"github.com/starling-fl/starling/quant"
)

// Three devices' updates become integers, are added up as a masked sum would be,
// and are decoded to their mean. No symbol says more than the lattice allows.
func Example() {
	scheme, err := quant.Lookup("fixed16")
	check(err)
	lattice, err := quant.NewLattice(scheme, 1000, 1, [32]byte{7}) // 1000 values, clipped to norm 1
	check(err)
	width, err := quant.Width(scheme, 3)
	check(err)

	sum := make([]int64, lattice.D())
	for device := range 3 {
		update := make([]float32, 1000)
		update[0] = 0.3 * float32(device) // norms 0, 0.3, 0.6
		symbols, err := lattice.Encode(update, rand.Reader)
		check(err)
		for i, s := range symbols {
			sum[i] += int64(s)
		}
	}
	check(lattice.CheckSum(sum, 3))
	mean, err := lattice.DecodeMean(sum, 3)
	check(err)
	fmt.Printf("%d coordinates of %d bits on the ring\n", lattice.D(), width)
	fmt.Println("mean of the first value, 0.3 expected, within 0.01:", math.Abs(float64(mean[0])-0.3) < 0.01)
	// Output:
	// 1024 coordinates of 16 bits on the ring
	// mean of the first value, 0.3 expected, within 0.01: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
