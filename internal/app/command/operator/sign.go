package operator

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/job/statement"
)

// signature is what "job sign" prints.
type signature struct {
	Domain    string `json:"domain"`
	Address   string `json:"address"`
	Signature string `json:"signature"`
	KeyFile   string `json:"key_file"`       // the text of the domain's file
	Made      string `json:"made,omitempty"` // the file of a new key
}

func newJobSignCmd(a *command.App) *cobra.Command {
	var key, domain, address string
	cmd := &cobra.Command{
		Use:   "sign FILE --domain DOMAIN --address URL --key FILE",
		Short: "Sign a job file's statement of who asks, with a key of your domain",
		Long: `Sign the section about of a job file for the address at which devices reach its coordinator.
Add the three lines to the section, and serve the printed file at
https://DOMAIN/.well-known/starling.json. Owners then read that your domain confirms it.
The key is made where FILE is missing. Keep it secret. Sign again after a change.`,
		Example: "  starling job sign job.yaml --domain example.org --address https://fl.example.org:9443 --key about.key",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || key == "" || domain == "" || address == "" {
				return usage.Errorf("%s takes one job file, --domain, --address and --key", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			j, err := job.Load(args[0])
			if err != nil {
				return err
			}
			made, err := sign(&j, key, domain, address)
			if err != nil {
				return err
			}
			return a.Emit(made, made.print)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "file of the organisation's secret key; made where it is missing")
	cmd.Flags().StringVar(&domain, "domain", "", "the organisation's domain, whose website serves the key's public half")
	cmd.Flags().StringVar(&address, "address", "", "https address at which devices reach the coordinator")
	return cmd
}

func sign(j *job.Job, keyPath, domain, address string) (*signature, error) {
	about := j.About
	if about.IsZero() {
		return nil, usage.Errorf("the job file has no section about: say who asks (organisation) and what for (purpose)")
	}
	about.Domain, about.Address, about.Signature = domain, strings.TrimRight(address, "/"), ""
	if err := about.Check(); err != nil {
		return nil, usage.Errorf("%v", err)
	}
	key, made, err := aboutKey(keyPath)
	if err != nil {
		return nil, err
	}
	file, err := statement.KeyFile(key.Public().(ed25519.PublicKey))
	s := &signature{Domain: about.Domain, Address: about.Address, Signature: about.Sign(j.Name, key), KeyFile: string(file)}
	if made {
		s.Made = keyPath
	}
	return s, err
}

// aboutKey reads a key's seed in base64, or makes one.
func aboutKey(path string) (key ed25519.PrivateKey, made bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		seed := make([]byte, ed25519.SeedSize)
		_, _ = rand.Read(seed) // it ends the program rather than fail
		return ed25519.NewKeyFromSeed(seed), true, durable.Create(path, []byte(base64.StdEncoding.EncodeToString(seed)+"\n"), 0o600)
	}
	if err != nil {
		return nil, false, err
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, false, usage.Errorf("%s is no key: it holds %d bytes in base64, as job sign makes it", path, ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), false, nil
}

func (s *signature) print(w io.Writer) error {
	if s.Made != "" {
		fmt.Fprintf(w, "a new key is in %s: keep it secret\n", s.Made)
	}
	_, err := fmt.Fprintf(w, `add to the section about of the job file:

  domain: %s
  address: %s
  signature: %s

serve this at https://%s%s:

%s
`, s.Domain, s.Address, s.Signature, s.Domain, statement.Path, s.KeyFile)
	return err
}
