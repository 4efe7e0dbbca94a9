package bases

import (
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model/hub"
)

// PublicFolder is the only place in a server's folder from which jobs that are submitted read files: the token of
// an operator elsewhere opens no other path of the machine.
const PublicFolder = "public"

// Public is the path of a file or folder that key of a submitted job names, from PublicFolder of the server's
// folder dir on.
func Public(dir, key, name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", usage.Errorf("%s is %.80q: a job that is submitted to a server names it from %s/ of the server's folder on, "+
			"without .. and without a leading /", key, name, PublicFolder)
	}
	return filepath.Join(dir, PublicFolder, name), nil
}

// Hosted is a submitted job with the paths of its base and its start, as the server of a folder finds them. The
// base is embedded, a folder in PublicFolder, or a model in the local cache.
func Hosted(dir string, j job.Job) (job.Job, error) {
	if j.Base != "" && j.BaseRevision == "" && !embedded(j.Base) {
		path, err := Public(dir, "base", j.Base)
		if err != nil {
			return j, err
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			if path, err = hub.Cached(j.Base); err != nil {
				return j, usage.Errorf("%v; a folder belongs into %s of the server's folder", err, PublicFolder)
			}
		}
		j.Base = path
	}
	if start := j.Adapter.Start; start != "" {
		path, err := Public(dir, "adapter.start", start)
		if err != nil {
			return j, err
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return j, usage.Errorf("adapter.start is %.80q: put that folder to %s first", start, path)
		}
		j.Adapter.Start = path
	}
	return j, nil
}
