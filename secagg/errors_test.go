package secagg

import "errors"

func isBelowThreshold(err error) bool {
	var s *ShardError
	return errors.As(err, &s) && errors.Is(err, ErrBelowThreshold)
}
