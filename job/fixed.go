package job

// How a round's cohort is chosen: values of cohort.sampling.
const (
	samplingPoisson = "poisson"
	samplingFixed   = "fixed"
)

// Fixed reports whether cohorts are of a fixed size, cohort.size, drawn without
// replacement from the devices that are there.
func (j Job) Fixed() bool { return j.Cohort.Sampling == samplingFixed }

// Alone reports whether a round has one device and the job promises no privacy, as in cross-silo
// studies of three clients at a rate of .35 (Federated Document Visual Question Answering, 2024,
// section 4). Nothing hides that device's update, so such a job can be simulated and is refused by
// coordinators.
func (j Job) Alone() bool { return j.Fixed() && j.Privacy.None && j.Cohort.Size == 1 }

// Served returns an error for a job that can be simulated and that no coordinator runs.
func (j Job) Served() error {
	if j.Alone() {
		return refuse("cohort.size is 1, must be at least 2: one device's update is not hidden by any other (starling simulate takes such a job)")
	}
	return nil
}

// CheckSampling returns an error unless name is a value of cohort.sampling; "" stands for poisson.
func CheckSampling(name string) error {
	if name != "" && name != samplingPoisson && name != samplingFixed {
		return refuse("cohort.sampling is %.40q, must be poisson or fixed", name)
	}
	return nil
}

// validateSampling checks how cohorts are chosen.
func (j Job) validateSampling() error {
	co := j.Cohort
	if err := CheckSampling(co.Sampling); err != nil {
		return err
	}
	if !j.Fixed() {
		if co.Size != 0 {
			return refuse("cohort.size is %d, which has a meaning with cohort.sampling fixed only", co.Size)
		}
		return nil
	}
	switch {
	case co.Size < j.leastFloor() || co.Size > co.Population:
		return refuse("cohort.size is %d, must be in 2..cohort.population = %d: one device's update is not hidden by any other", co.Size, co.Population)
	case co.SamplingRate != 1:
		return refuse("cohort.sampling_rate is %v and cohort.sampling fixed: leave the rate out, %d of %d is size / population", co.SamplingRate, co.Size, co.Population)
	case j.Simulated():
		return refuse("cohort.sampling is fixed and privacy.simulated_population set: a larger cohort is simulated of coins only")
	}
	return nil
}
