package participation

import (
	"context"
	"io"
	"strings"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/hub"
)

// FromCoordinator is the default source of a base. (The others are the hub and a mirror's address.)
const FromCoordinator = "coordinator"

const fromHub = "hub"

// baseFrom gets bases from where they are published, as --base-from says; nil where the
// coordinator sends them.
func baseFrom(from string, said io.Writer) (func(context.Context, edge.Published) (*model.Base, error), error) {
	if from == FromCoordinator {
		return nil, nil
	}
	client, err := hub.FromEnv()
	switch {
	case err != nil:
		return nil, usage.Wrap(err)
	case strings.Contains(from, "://"):
		// HF_TOKEN is for the hub that the user's account is with.
		if client, err = hub.At(from); err != nil {
			return nil, usage.Errorf("--base-from: %w", err)
		}
	case from != fromHub:
		return nil, usage.Errorf("--base-from is %.80q, want %s, %s or the address of a mirror, https://...; a folder is --base's", from, FromCoordinator, fromHub)
	}
	client.Progress = terminal.FetchProgress(said)
	return func(ctx context.Context, p edge.Published) (*model.Base, error) {
		if p.Revision == "" && strings.HasPrefix(p.Name, "starling/") {
			b, _, err := bases.OpenNamed(p.Name)
			return b, err
		}
		if p.Revision != "" {
			if dir, err := hub.FindAt(p.Name, p.Revision); err == nil {
				if b, err := model.LoadBaseDir(dir); err == nil { // else it has come in part
					return b, nil
				}
			}
		}
		client := *client
		client.MaxBytes = p.MaxBytes
		got, err := client.Fetch(ctx, p.Name, p.Revision)
		if err != nil {
			return nil, err
		}
		return model.LoadBaseDir(got.Folder)
	}, nil
}
