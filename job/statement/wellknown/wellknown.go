// Package wellknown fetches the keys that a domain names in /.well-known/starling.json, and holds a statement against
// them: who controls the domain's https has said it.
//
//	err := wellknown.Verify(ctx, http.DefaultClient, about, job, address)
package wellknown

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/starling-fl/starling/job/statement"
)

// Patience is how long a domain is waited for.
const Patience = 5 * time.Second

// Verify returns nil where the statement's domain names a key that signed it, for the job of that name at that address.
// It fetches one file, by client, which follows no redirect: another domain does not answer for this one.
func Verify(ctx context.Context, client *http.Client, a statement.Statement, job, address string) error {
	if err := a.SignedFor(address); err != nil {
		return err // and fetch nothing
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	keys, err := fetch(ctx, client, a.Domain)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Domain, err)
	}
	return a.Holds(job, address, keys)
}

func fetch(ctx context.Context, client *http.Client, domain string) ([]ed25519.PublicKey, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+domain+statement.Path, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement.Path, err)
	}
	strict := *client
	strict.CheckRedirect = func(*http.Request, []*http.Request) error { return errors.New("it answers for another address") }
	response, err := strict.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement.Path, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: the answer is %s", statement.Path, response.Status)
	}
	b, err := io.ReadAll(io.LimitReader(response.Body, statement.MostFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement.Path, err)
	}
	return statement.Keys(b)
}
