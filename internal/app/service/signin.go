package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/signin"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/secretfile"
	"github.com/starling-fl/starling/internal/app/usage"
)

// SignIn holds the settings of operators' sign-in by an OpenID provider.
type SignIn struct {
	Issuer, ClientID, SecretFile, Claim string
	Admin, Operator, Viewer             []string // groups
}

// open returns the issuer; nil if there is none.
func (o SignIn) open(log *slog.Logger) (*signin.Issuer, error) {
	groups := map[store.Role][]string{store.RoleAdmin: o.Admin, store.RoleOperator: o.Operator, store.RoleViewer: o.Viewer}
	if o.Issuer == "" {
		if o.ClientID != "" || o.SecretFile != "" || len(o.Admin)+len(o.Operator)+len(o.Viewer) > 0 {
			return nil, usage.Errorf("--oidc-client-id, --oidc-client-secret-file, --oidc-admin, --oidc-operator and --oidc-viewer need --oidc-issuer-url")
		}
		return nil, nil
	}
	secret := ""
	if o.SecretFile != "" {
		text, err := secretfile.Read(o.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("--oidc-client-secret-file: %w", err)
		}
		secret = text
	}
	issuer, err := signin.New(signin.Config{Issuer: o.Issuer, ClientID: o.ClientID, Secret: secret, Claim: o.Claim, Groups: groups, Log: log})
	if err != nil {
		return nil, usage.Errorf("--oidc-issuer-url, --oidc-client-id, --oidc-groups-claim, --oidc-admin, --oidc-operator, --oidc-viewer: %v", err)
	}
	return issuer, nil
}

// reachAdmin says where browsers have the dashboard, and looks for the issuer beside all else; end
// waits until it does no longer.
func (p *parts) reachAdmin(ctx context.Context, e *server.Endpoint, at func(string) error) (address string, end func(), err error) {
	if ip, ok := e.Listener.Addr().(*net.TCPAddr); p.issuer != nil && p.AdminURL == "" && ok && ip.IP.IsUnspecified() {
		return "", nil, usage.Errorf("--oidc-issuer-url with --admin %s needs --admin-url: the address to which the issuer sends browsers back", p.Admin)
	}
	address = cmp.Or(strings.TrimRight(p.AdminURL, "/"), e.URL)
	if err := at(address); err != nil {
		return "", nil, usage.Errorf("--admin-url: %v", err)
	}
	if p.issuer == nil {
		return address, func() {}, nil
	}
	ctx, stop := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		p.issuer.Run(ctx, func(err error) {
			if err != nil {
				fmt.Fprintf(p.Stderr, "sign-in by %s fails and is tried again; operators' own tokens work: %s\n", p.issuer.Name(), signin.Reason(err))
				return
			}
			fmt.Fprintf(p.Stderr, "operators sign in by %s\n", p.issuer.Name())
		})
	})
	return address, func() { stop(); looking.Wait() }, nil
}
