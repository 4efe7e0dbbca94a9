//go:build !linux && !darwin && !windows

package idle

import "errors"

func onBattery() (bool, error) { return false, errors.New("it is not asked of this system") }

func onMetered() (bool, error) { return false, errors.New("it is not asked of this system") }
