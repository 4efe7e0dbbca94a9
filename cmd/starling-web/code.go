//go:build js

package main

import (
	"errors"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/web/client"
)

// causes are what a device ends for, as pages know it.
var causes = []struct {
	code client.Code
	of   []error
}{
	{client.Unreachable, []error{edge.ErrUnreachable}},
	{client.Version, []error{edge.ErrVersion}},
	{client.Secret, []error{edge.ErrSecret}},
	{client.Duplicate, []error{edge.ErrDuplicate}},
	{client.Promise, []error{edge.ErrPromise, edge.ErrUnpromised, edge.ErrLog}},
	{client.Protocol, []error{edge.ErrRelay, edge.ErrPin}},
	{client.Account, []error{edge.ErrAccount}},
	{client.Data, []error{edge.ErrData}},
	{client.Job, []error{edge.ErrJobChanged, edge.ErrNotPrivate, edge.ErrBase, edge.ErrJob}},
	{client.Options, []error{edge.ErrConfig, errOptions, errBusy}},
}

// errOptions is what a page asks for that makes no sense.
var errOptions = errors.New("bad options")

// codeOf is why a device has ended.
func codeOf(err error) client.Code {
	if len(edge.PolicyErrors(err)) > 0 {
		return client.Policy // which its owner may accept, whatever is refused
	}
	for _, c := range causes {
		for _, cause := range c.of {
			if errors.Is(err, cause) {
				return c.code
			}
		}
	}
	switch refused, broken := new(edge.RefusedError), new(edge.ProtocolError); {
	case errors.As(err, &refused):
		switch refused.Code {
		case wire.CodeEnrolment:
			return client.Secret // a withdrawn or spent invitation
		case wire.CodeVersion:
			return client.Version
		case wire.CodeArithmetic:
			return client.Job
		}
		return client.Excluded
	case errors.As(err, &broken):
		return client.Protocol
	}
	return client.Failed
}
