package operator

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/signin"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/admin"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/usage"
)

// signIn is how operators sign in by an OpenID provider.
type signIn struct {
	issuer, clientID, secretFile, claim string
	admin, operator, viewer             []string
}

// flags adds them; those that kube-apiserver has, too, are called as there.
func (o *signIn) flags(fl *pflag.FlagSet) {
	fl.StringVar(&o.issuer, "oidc-issuer-url", "", "OpenID provider by which operators sign in, as https://id.example.org/realms/staff; beside their own tokens")
	fl.StringVar(&o.clientID, "oidc-client-id", "", "client as which that provider knows this coordinator; it sends browsers back to /v1/oidc/callback of --admin-url")
	fl.StringVar(&o.secretFile, "oidc-client-secret-file", "", "file with that client's secret, if it is no public one")
	fl.StringVar(&o.claim, "oidc-groups-claim", "groups", "claim whose values are the groups below")
	fl.StringArrayVar(&o.admin, "oidc-admin", nil, "group whose members are admins; repeat it for more")
	fl.StringArrayVar(&o.operator, "oidc-operator", nil, "group whose members have the role operator")
	fl.StringArrayVar(&o.viewer, "oidc-viewer", nil, "group whose members are viewers")
}

// open returns the issuer of the flags; nil if there is none.
func (o signIn) open(log *slog.Logger) (*signin.Issuer, error) {
	groups := map[store.Role][]string{store.RoleAdmin: o.admin, store.RoleOperator: o.operator, store.RoleViewer: o.viewer}
	if o.issuer == "" {
		if o.clientID != "" || o.secretFile != "" || len(o.admin)+len(o.operator)+len(o.viewer) > 0 {
			return nil, usage.Errorf("--oidc-client-id, --oidc-client-secret-file, --oidc-admin, --oidc-operator and --oidc-viewer need --oidc-issuer-url")
		}
		return nil, nil
	}
	secret := ""
	if o.secretFile != "" {
		text, err := admin.ReadToken(o.secretFile)
		if err != nil {
			return nil, fmt.Errorf("--oidc-client-secret-file: %w", err)
		}
		secret = text
	}
	issuer, err := signin.New(signin.Config{Issuer: o.issuer, ClientID: o.clientID, Secret: secret, Claim: o.claim, Groups: groups, Log: log})
	if err != nil {
		return nil, usage.Errorf("--oidc-issuer-url, --oidc-client-id, --oidc-groups-claim, --oidc-admin, --oidc-operator, --oidc-viewer: %v", err)
	}
	return issuer, nil
}

// reachAdmin says where browsers have the dashboard, and looks for the issuer beside all else; end
// waits until it does no longer.
func (f serveFlags) reachAdmin(ctx context.Context, a *command.App, e *server.Endpoint, at func(string) error, issuer *signin.Issuer) (address string, end func(), err error) {
	if ip, ok := e.Listener.Addr().(*net.TCPAddr); issuer != nil && f.adminURL == "" && ok && ip.IP.IsUnspecified() {
		return "", nil, usage.Errorf("--oidc-issuer-url with --admin %s needs --admin-url: the address to which the issuer sends browsers back", f.admin)
	}
	address = cmp.Or(strings.TrimRight(f.adminURL, "/"), e.URL)
	if err := at(address); err != nil {
		return "", nil, usage.Errorf("--admin-url: %v", err)
	}
	if issuer == nil {
		return address, func() {}, nil
	}
	ctx, stop := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		issuer.Run(ctx, func(err error) {
			if err != nil {
				fmt.Fprintf(a.Stderr, "nobody can sign in by %s now, it is tried again; operators' own tokens work: %s\n", issuer.Name(), signin.Reason(err))
				return
			}
			fmt.Fprintf(a.Stderr, "operators sign in by %s\n", issuer.Name())
		})
	})
	return address, func() { stop(); looking.Wait() }, nil
}
