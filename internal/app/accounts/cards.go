package accounts

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/internal/leaf/durable"
)

// KeepCard keeps the signed privacy card of a job, and returns where.
func (a *Folder) KeepCard(task [32]byte, file []byte) (path string, err error) {
	path = filepath.Join(a.dir, "cards", fmt.Sprintf("%x.json", task))
	if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
		err = durable.Replace(path, file, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("privacy card: %w", err)
	}
	return path, nil
}
