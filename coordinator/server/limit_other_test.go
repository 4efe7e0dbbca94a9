//go:build !unix

package server

import "errors"

func limitFiles() error { return errors.ErrUnsupported }
