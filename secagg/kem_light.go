//go:build js && !full

package secagg

import "errors"

// hybridOffered reports whether this build has SuiteHybrid: ML-KEM and the curves
// that crypto/hpke brings are a fifth of what a browser loads, and few jobs ask
// for them. The full build has them.
const hybridOffered = false

var errLight = errors.New("secagg: the light build has no hybrid suite")

// A kemPrivate is not a key: Config.Validate refuses the suite first.
type kemPrivate struct{}

func newKEM([]byte) (kemPrivate, []byte, error)              { return kemPrivate{}, nil, errLight }
func checkKEMKey([]byte) error                               { return errLight }
func encapsulate(_, _ []byte) (enc, secret []byte, _ error)  { return nil, nil, errLight }
func decapsulate(kemPrivate, []byte, []byte) ([]byte, error) { return nil, errLight }
