package dp_test

import (
	"crypto/rand"
	"fmt"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
)

// Providers inside clients: the client's coin, which they share, does not
// amplify, their own does.
func ExampleGroupSampling() {
	g := dp.GroupSampling{ClientRate: 0.2, ProviderRate: 0.5}
	e, err := accounting.Epsilon([]dp.Event{g.Rounds(1.1, 100)}, 1e-5, dp.Tight)
	fmt.Printf("%.2f for %s, %v\n", e.Epsilon, e.Adjacency, err)
	// Output: 14.20 for add/remove of one provider, <nil>
}

// A release: flip the coins, sum the clipped integer vectors of those who are in,
// add noise, charge.
func ExampleRelease() {
	members := [][]byte{[]byte("ann"), []byte("bob"), []byte("cem")}
	in, certificate, err := dp.DrawCohort(members, 0.5, rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	sum := make([]int64, 4)
	for i := range members {
		if in[i] {
			for j, v := range []int64{3, -4, 0, 1} { // squared norm 26
				sum[j] += v
			}
		}
	}
	event, err := dp.Release(sum, dp.ReleaseSpec{
		Round: 1, SamplingRate: certificate.AccountedRate(), B2: 26, NoiseMultiplier: 5, NoiseScale: 1,
		Certificate: certificate.Hash(),
	}, dp.NewSampler(rand.Reader))
	if err != nil {
		fmt.Println(err)
		return
	}
	// The event goes into the ledger before sum goes anywhere.
	g, err := accounting.Epsilon([]dp.Event{event}, 1e-6, dp.Tight)
	fmt.Printf("%s of %d coordinates, sigma^2 = %s, epsilon %.3f, %v\n", event.Kind, event.Dim, event.Sigma2, g.Epsilon, err)
	// Output: release of 4 coordinates, sigma^2 = 650, epsilon 0.482, <nil>
}

// The clip norm follows the updates; the bits travel in the same vector.
func ExampleAdaptiveClip() {
	const z, devices, b2 = 1.0, 1000, 100_000
	count, err := dp.NewCountCode(b2, 12, z, devices/20)
	if err != nil {
		fmt.Println(err)
		return
	}
	sum := make([]int64, count.Coordinates) // behind the update's own
	one := make([]int32, count.Coordinates)
	for i := range devices {
		count.Encode(one, i < 800) // 800 are within the norm
		for j, v := range one {
			sum[j] += int64(v)
		}
	}
	clip := dp.AdaptiveClip{Quantile: 0.5, Rate: 0.2, Min: 0.01, Max: 100}
	next, err := clip.Next(2, count.Decode(sum), devices)
	fmt.Printf("B2 %d, of which the count is %d; the norm goes from 2 to %.4f, %v\n", b2+count.B2(), count.B2(), next, err)
	// Output: B2 100016, of which the count is 16; the norm goes from 2 to 1.8835, <nil>
}
