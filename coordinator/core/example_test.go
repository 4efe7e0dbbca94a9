package core_test

import (
	"fmt"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model/base"
)

// A Core is a job's arithmetic without a network: it says what a round asks and
// what it will cost, and takes the sum of the answers.
func ExampleCore() {
	b, err := base.Default()
	check(err)
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "mail", []string{"hotel", "travel"}, 10
	j.Cohort.Population = 24
	c, err := core.New(j, b, []byte("a seed: nothing here is private"))
	check(err)

	draw, err := c.Draw(dp.PoissonDrawNumbered(24))
	check(err)
	fmt.Println(len(draw.Cohort()), "devices are asked, of ranks", c.Ranks())
	sum := make([]int64, draw.Size()) // what unmasking gives: here nobody has learned anything
	event, clip, err := c.Release(draw, sum, 0, false, dp.NewSampler(c.Noise(draw)))
	check(err)
	c.Commit(clip)
	spent, err := accounting.Epsilon([]dp.Event{event}, c.Budget().Delta, dp.Tight)
	check(err)
	fmt.Println("version", c.Version(), "is released, within the budget:", spent.Epsilon < c.Budget().Epsilon)

	_, err = core.New(job.Default(), b, nil)
	fmt.Println(err)
	// Output:
	// 24 devices are asked, of ranks [1 2 3 4 5 6 7 8]
	// version 1 is released, within the budget: true
	// job: name has 0 bytes, must have 1..256
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
