package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
)

type gatewayFlags struct {
	nats                 relay.Access
	name, listen, health string
	log                  command.Log
}

func newGatewayCmd(a *command.App) *cobra.Command {
	var f gatewayFlags
	cmd := &cobra.Command{
		Use:   "gateway --nats URL",
		Short: "Pass devices' connections on to the coordinator that owns their jobs",
		Long: `Pass devices' connections on, over NATS, to the one of several coordinators (starling
serve --nats) that owns their jobs. As many gateways may run as there are machines for; each
holds open connections and nothing else: no key, no job and no session. TLS ends at the
coordinator, so that a gateway sees and changes no more than any network between. Where the
coordinator dies, devices dial again at once and wait for the one that takes its place.`,
		Example: "  starling gateway --nats tls://nats.example.org:4222 --nats-creds gateway1.creds --name gateway1 --listen 0.0.0.0:8443",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.nats.URL == "" {
				return usage.Errorf("--nats is required: the URL of the NATS servers that serve --nats has")
			}
			return runGateway(cmd.Context(), a, f)
		},
	}
	cmd.Flags().StringVar(&f.nats.URL, "nats", "", "NATS servers, as tls://nats.example.org:4222; several with commas between")
	f.nats.Flags(cmd.Flags())
	cmd.Flags().StringVar(&f.name, "name", "", "the gateway's name, in the subjects that NATS lets it use; no other one has it (default: the host's name)")
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8080", "address to listen on for devices")
	cmd.Flags().StringVar(&f.health, "health", "", "address of /healthz, /readyz (200 while there is a coordinator to pass on to) and /metrics")
	f.log.Flags(cmd.Flags())
	command.Settings(cmd)
	return cmd
}

func runGateway(ctx context.Context, a *command.App, f gatewayFlags) error {
	log, err := f.log.Logger(a.Stderr)
	if err != nil {
		return err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if f.name == "" {
		if f.name, err = os.Hostname(); err != nil {
			return fmt.Errorf("--name: %w", err)
		}
	}
	nc, err := relay.Connect(f.nats, f.name, log)
	if err != nil {
		return err
	}
	defer nc.Close()
	g, err := relay.NewGateway(nc, f.name, log)
	if err != nil {
		return usage.Errorf("--name: %v", err)
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	endpoint := server.On(l, nil)
	endpoint.Bound()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running := 2
	ended := make(chan error, 3)
	go func() { ended <- g.Follow(ctx) }()
	go func() { ended <- g.Serve(ctx, endpoint.Listener) }()
	if f.health != "" {
		running++
		go func() { ended <- serveHealth(ctx, f.health, g) }()
	}
	fmt.Fprintf(a.Stderr, "listening on %s as gateway %s\n", l.Addr(), f.name)
	for range running {
		err = errors.Join(err, <-ended)
		stop() // none is of use without the others
	}
	return err
}

// serveHealth says how a gateway is.
func serveHealth(ctx context.Context, address string, g *relay.Gateway) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--health: %w", err)
	}
	srv := &http.Server{Handler: g.Health(), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("--health: %w", err)
	}
	return nil
}
