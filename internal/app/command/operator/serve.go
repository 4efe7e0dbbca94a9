package operator

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/service"
)

func newServeCmd(a *command.App, n natsaccess.Start) *cobra.Command {
	f := service.Config{StartNATS: n}
	var log command.Log
	cmd := &cobra.Command{
		Use:   "serve --dir DIR [--job job.yaml]",
		Short: "Run a coordinator for a fleet that comes and goes: of one job, or of several",
		Long: `Run a coordinator: it enrols devices, runs rounds until the job's rounds are
committed or its privacy budget is spent, and writes a checkpoint after each.
State lives in --dir; started again with the same job it continues with the
next round, the ledger intact. The join token is printed on standard error.

Without --job it runs the jobs that were submitted to --dir (see starling job submit), over
one fleet, until it is stopped.`,
		Example: "  starling serve --job job.yaml --dir run1 --listen 0.0.0.0:8443 --tls --url https://fl.example.org:8443",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.Log, err = log.Logger(a.Stderr); err != nil {
				return err
			}
			f.ListenGiven, f.Drawn, f.Stderr, f.Version = cmd.Flags().Changed("listen"), log.Drawn(), a.Stderr, a.Version
			r, err := f.Run(cmd.Context())
			if r != nil { // with what the budget left undone
				err = errors.Join(err, a.Emit(r, r.Print))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&f.Job, "job", "", "job file (YAML)")
	cmd.Flags().StringVar(&f.Dir, "dir", "", "folder for the ledger, journal and checkpoints")
	cmd.Flags().StringVar(&f.Store, "store", "", "PostgreSQL database for the ledger and the journal in place of a file in --dir, as postgres://USER@HOST/DATABASE, with ?schema=NAME for each server; kept in --dir. Several may be started with one: the others stand by")
	cmd.Flags().StringVar(&f.Blobs, "blobs", "", "S3-compatible bucket for base, adapter.start and releases, as s3://BUCKET/PREFIX?endpoint=https://HOST, so that owners with one --store need no folder in common; credentials from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE")
	cmd.Flags().StringVar(&f.Listen, "listen", "127.0.0.1:8080", "address to listen on")
	cmd.Flags().StringVar(&f.URL, "url", "", "how devices reach this address, if not by the one listened on; with a path where a proxy serves it below one")
	cmd.Flags().StringVar(&f.Admin, "admin", service.FreeAdmin, "address of the dashboard and of /metrics, which ask for the token that is printed; off loopback with TLS. Port 0 is a free one, kept in --dir for the next start")
	cmd.Flags().StringVar(&f.AdminURL, "admin-url", "", "how browsers reach --admin, if not by the address listened on; with a path where a proxy serves it below one")
	signInFlags(cmd.Flags(), &f.SignIn)
	cmd.Flags().BoolVar(&f.TLS.Pinned, "tls", false, "serve TLS with a certificate kept in --dir, pinned by the join token")
	cmd.Flags().StringVar(&f.TLS.Cert, "tls-cert", "", "serve TLS with this certificate chain (PEM), read again when it is renewed; devices ask their system's authorities, so give --url")
	cmd.Flags().StringVar(&f.TLS.Key, "tls-key", "", "key of --tls-cert (PEM)")
	cmd.Flags().StringVar(&f.TLS.Host, "acme", "", "serve TLS with a certificate for this host name from Let's Encrypt, renewed by itself; it must reach --listen at port 443. You accept the authority's terms by it")
	cmd.Flags().StringVar(&f.TLS.Directory, "acme-directory", "", "URL of another authority's ACME directory")
	cmd.Flags().StringVar(&f.TLS.Authorities, "acme-ca", "", "PEM file of those who vouch for that directory's own certificate, in place of the system's authorities")
	cmd.Flags().StringSliceVar(&f.Trusted, "trust-proxy", nil, "addresses (CIDR) of proxies whose X-Forwarded-For is taken, so that limits of an address are the devices' own")
	cmd.Flags().StringSliceVar(&f.Origins, "allow-origin", nil, "other site whose pages may take part, as https://app.example.org; repeat it for more. Whoever controls that site can make devices of its visitors")
	cmd.Flags().StringVar(&f.Validation, "validation", "", "public labelled file that scores every round and chooses the rank")
	cmd.Flags().StringVar(&f.Test, "test", "", "public labelled file for the result table")
	command.ColumnFlags(cmd.Flags(), &f.Columns)
	cmd.Flags().StringVar(&f.Sample, "sample", "", "public labelled file that the join page offers to visitors to try; neither --validation nor --test")
	cmd.Flags().BoolVar(&f.EveryRank, "test-every-rank", false, "score --test at every rank, not only at the one that validation chose")
	cmd.Flags().StringVar(&f.Witness, "witness", "", "URL of a witness (C2SP tlog-witness) that signs the log of enrolled keys before each round, for devices that ask for it")
	cmd.Flags().BoolVar(&f.DespiteDropout, "despite-dropout", false, "go on where the job paused since more devices drop out than cohort.dropout declares; no epsilon covers that")
	cmd.Flags().IntVar(&f.MostJobs, "most-jobs", 0, "without --job: how many jobs are open at once, others wait (default 4)")
	cmd.Flags().Float64Var(&f.Epsilon, "fleet-epsilon", 0, "without --job: what the jobs of a pool may spend together, from now on; kept in --dir (default: what was given before, or each job's own budget alone)")
	cmd.Flags().Float64Var(&f.Delta, "fleet-delta", 0, "the delta of --fleet-epsilon")
	cmd.Flags().DurationVar(&f.Linger, "linger", 3*time.Second, "how long devices may still ask after the job's end")
	cmd.Flags().BoolVar(&f.QR, "qr", false, "draw the join page's address as a QR code even where a terminal would not show it, or only this machine reaches it")
	cmd.Flags().StringVar(&f.NATS.URL, "nats", "", "NATS servers by which gateways (starling gateway) pass devices' connections on, in place of --listen")
	f.NATS.Flags(cmd.Flags())
	cmd.Flags().StringVar(&f.NATSListen, "nats-listen", "", "in place of --nats: address at which this process is a NATS server for its --gateway, with TLS and a password for each")
	cmd.Flags().StringSliceVar(&f.Gateways, "gateway", nil, "name of a gateway that --nats-listen lets in, once for each; its settings are written to gateways/NAME.yaml in --dir")
	log.Flags(cmd.Flags())
	command.Settings(cmd)
	command.Headings(cmd.Flags(),
		[]string{"Job and state", "job", "dir", "store", "blobs", "witness", "despite-dropout", "linger"},
		[]string{"How devices reach it", "listen", "url", "allow-origin", "trust-proxy", "qr"},
		[]string{"TLS", "tls", "tls-cert", "tls-key", "acme", "acme-directory", "acme-ca"},
		[]string{"Dashboard and operators", "admin", "admin-url", "oidc-issuer-url", "oidc-client-id", "oidc-client-secret-file", "oidc-groups-claim",
			"oidc-admin", "oidc-operator", "oidc-viewer"},
		[]string{"Public data", "validation", "test", "test-every-rank", "sample", "map", "text-column", "label-column", "unlabelled"},
		[]string{"Several jobs", "most-jobs", "fleet-epsilon", "fleet-delta"},
		[]string{"Gateways", "nats", "nats-ca", "nats-cert", "nats-key", "nats-creds", "nats-pin", "nats-listen", "gateway"},
		[]string{"Log and settings", "log", "log-level", "verbose", "config"})
	return cmd
}

// signInFlags adds the flags of operators' sign-in; those that kube-apiserver has, too, are called as there.
func signInFlags(fl *pflag.FlagSet, o *service.SignIn) {
	fl.StringVar(&o.Issuer, "oidc-issuer-url", "", "OpenID provider by which operators sign in, as https://id.example.org/realms/staff; beside their own tokens")
	fl.StringVar(&o.ClientID, "oidc-client-id", "", "client as which that provider knows this coordinator; it sends browsers back to /v1/oidc/callback of --admin-url")
	fl.StringVar(&o.SecretFile, "oidc-client-secret-file", "", "file with that client's secret, if it is not a public one")
	fl.StringVar(&o.Claim, "oidc-groups-claim", "groups", "claim whose values are the groups below")
	fl.StringArrayVar(&o.Admin, "oidc-admin", nil, "group whose members are admins; repeat it for more")
	fl.StringArrayVar(&o.Operator, "oidc-operator", nil, "group whose members have the role operator")
	fl.StringArrayVar(&o.Viewer, "oidc-viewer", nil, "group whose members are viewers")
}
