package job

import (
	"math"
	"strings"
)

// The server's optimizers, as Server.Optimizer names them. What they compute is package coordinator/optimizer's.
const (
	FedAvg     = "fedavg"
	FedAvgM    = "fedavgm"
	FedAdagrad = "fedadagrad"
	FedAdam    = "fedadam"
	FedYogi    = "fedyogi"
)

var optimizers = []string{FedAvg, FedAvgM, FedAdagrad, FedAdam, FedYogi}

// Derived fills in the learning rate and epsilon that follow from the optimizer. At rate 1 a mean
// update is applied as it is; FedAdam and FedYogi move every value by about the learning rate
// whatever the size of the update, and have the published rates (Nguyen et al. 2024: 1e-3, 1e-5).
// FedAdagrad's steps shrink with the rounds; its rate was measured.
func (s Server) Derived() Server {
	rate, epsilon := 1.0, 1e-3
	switch s.Optimizer {
	case FedAdam, FedYogi:
		rate, epsilon = 1e-3, 1e-5
	case FedAdagrad:
		rate, epsilon = 0.1, 1e-5
	}
	if s.LearningRate == 0 {
		s.LearningRate = rate
	}
	if s.Epsilon == 0 {
		s.Epsilon = epsilon
	}
	return s
}

// Validate returns an error that names the first field out of range for the optimizer. It ignores
// fields that the optimizer does not have.
func (s Server) Validate() error {
	unit := func(name string, v float64) error {
		if !(v >= 0 && v < 1) {
			return refuse("server.%s is %v, must be in [0, 1)", name, v)
		}
		return nil
	}
	if !(s.LearningRate > 0) || math.IsInf(s.LearningRate, 0) {
		return refuse("server.learning_rate is %v, must be positive and finite", s.LearningRate)
	}
	switch s.Optimizer {
	case FedAvg:
		return nil
	case FedAvgM:
		return unit("momentum", s.Momentum)
	case FedAdagrad:
		return first(s.epsilon(), unit("beta1", s.Beta1))
	case FedAdam, FedYogi:
		return first(s.epsilon(), unit("beta1", s.Beta1), unit("beta2", s.Beta2))
	}
	return refuse("server.optimizer is %q, must be one of %s", s.Optimizer, strings.Join(optimizers, ", "))
}

// first is the first of the errors that is one.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s Server) epsilon() error {
	if !(s.Epsilon > 0) || math.IsInf(s.Epsilon, 0) {
		return refuse("server.epsilon is %v, must be positive and finite", s.Epsilon)
	}
	return nil
}
