package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/model"
)

// Endpoint is the hub that is used if HF_ENDPOINT names no other.
const Endpoint = "https://huggingface.co"

// Limits on what a hub may make this machine store.
const (
	maxListing = 16 << 20 // bytes of a model's list of files
	maxFiles   = 100_000  // in it
	maxSmall   = 64 << 20 // bytes of a file that is not weights, a tokenizer's most of all
	maxWeights = 64 << 30 // bytes of weights, all shards together
)

// small are the other files that a base may have; the first is needed.
var small = []string{model.ConfigFile, model.TokenizerFile, "1_Pooling/config.json", "preprocessor_config.json",
	model.TokenizerConfigFile, model.ChatTemplateFile}

// older are what a tokenizer is made of where a model has no tokenizer.json.
var older = []string{model.AddedTokensFile, model.VocabFile, model.PairsFile, model.MergesFile,
	model.SentencePieceFile}

var (
	// ErrOffline is a hub that cannot be reached, or must not be asked.
	ErrOffline = errors.New("the hub is out of reach")
	// ErrHash: a file's bytes do not have the hash that the hub lists.
	ErrHash = errors.New("its bytes do not have the hash that the hub lists")
)

// Client fetches models. Its fields must not be changed in use.
type Client struct {
	Endpoint string // of the hub, without a slash at its end
	Token    string // sent to the endpoint alone; empty: none
	Cache    string // huggingface_hub's folder
	Offline  bool   // ask nobody
	MaxBytes int64  // bytes of weights that may come; 0: 64 GiB

	// Progress is called as a file comes, with its name, the bytes that are there and
	// those in all; nil: nobody.
	Progress func(file string, done, total int64)

	http  *http.Client
	stall time.Duration // without a byte: the connection is given up
	pause time.Duration // before the second try
}

// FromEnv returns a client configured by huggingface_hub's variables HF_ENDPOINT, HF_TOKEN,
// HF_HUB_OFFLINE, HF_HUB_CACHE and HF_HOME.
func FromEnv() (*Client, error) {
	c := &Client{Endpoint: strings.TrimRight(os.Getenv("HF_ENDPOINT"), "/"), Token: os.Getenv("HF_TOKEN"), Cache: cacheDir(),
		Offline: slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(os.Getenv("HF_HUB_OFFLINE")))}
	if c.Endpoint == "" {
		c.Endpoint = Endpoint
	}
	return c, c.check()
}

// At returns a client for another hub, or a mirror of one, without the token, which is for the
// default hub alone.
func At(endpoint string) (*Client, error) {
	c := &Client{Endpoint: strings.TrimRight(endpoint, "/"), Cache: cacheDir()}
	return c, c.check()
}

// check refuses an endpoint that is none, and one that would carry the token in the
// clear.
func (c *Client) check() error {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("the hub's address (HF_ENDPOINT) is %.200q, want an http or https address like %s", c.Endpoint, Endpoint)
	}
	if host := u.Hostname(); c.Token != "" && u.Scheme == "http" && host != "localhost" && host != "127.0.0.1" && host != "::1" {
		return fmt.Errorf("HF_ENDPOINT is %.200q: HF_TOKEN is not sent over plain http", c.Endpoint)
	}
	if c.http == nil {
		c.http = &http.Client{CheckRedirect: checkRedirect}
	}
	if c.stall == 0 {
		c.stall, c.pause = 30*time.Second, time.Second
	}
	return nil
}

// checkRedirect follows a hub to where it keeps large files, but not from https to
// http. The token goes to no other host, nor to another port of the hub's.
func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("more than 10 redirections")
	}
	if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return fmt.Errorf("redirected from https to %.200s", next.URL.Redacted())
	}
	// net/http keeps it for other ports of a host, and for hosts below it.
	if next.URL.Host != via[0].URL.Host {
		next.Header.Del("Authorization")
	}
	return nil
}

// Fetched is a model in the cache.
type Fetched struct {
	Name     string `json:"name"`
	Revision string `json:"revision"` // the commit
	Folder   string `json:"folder"`
	Files    int    `json:"files"`
	Bytes    int64  `json:"bytes"`   // of all of them
	Fetched  int64  `json:"fetched"` // bytes that came now
}

// entry is a file of a model as the hub lists it.
type entry struct {
	name string
	size int64
	hash string // hexadecimal: SHA-256, or git's SHA-1 of a blob
}

// Fetch downloads the files of a model that make up a base and are not in the cache yet, and checks
// each against the hash that the hub lists. revision is a branch, a tag or a commit; empty means
// main. An interrupted download is resumed, also by another process. The cache names the revision
// only once all files are there.
func (c *Client) Fetch(ctx context.Context, name, revision string) (*Fetched, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if revision == "" {
		revision = "main"
	}
	if !repoName.MatchString(name) || strings.Contains(name, "--") || strings.Contains(name, "..") {
		return nil, fmt.Errorf("%.200q is not a model's name on a hub: owner/name", name)
	}
	if !revisionName.MatchString(revision) || strings.Contains(revision, "..") {
		return nil, fmt.Errorf("%.200q is not a revision: a branch, a tag or a commit", revision)
	}
	if c.Offline {
		return nil, fmt.Errorf("%w: HF_HUB_OFFLINE is set; %s", ErrOffline, c.byHand(name))
	}
	commit, list, err := c.list(ctx, name, revision)
	if err != nil {
		return nil, err
	}
	repo := folder(c.Cache, name)
	out := &Fetched{Name: name, Revision: commit, Folder: filepath.Join(repo, "snapshots", commit)}
	get := func(e entry) error {
		came, err := c.file(ctx, name, commit, repo, e)
		out.Fetched += came
		if err != nil {
			return fmt.Errorf("%s of %s: %w", e.name, name, err)
		}
		out.Files++
		out.Bytes += e.size
		return link(repo, commit, e)
	}
	wanted := small
	if _, there := list[model.TokenizerFile]; !there {
		wanted = slices.Concat(small, older)
	}
	for i, want := range wanted {
		e, ok := list[want]
		if !ok && i == 0 {
			return nil, fmt.Errorf("%s has no %s: it is not a model of transformers", name, want)
		}
		if !ok {
			continue
		}
		if e.size > maxSmall {
			return nil, fmt.Errorf("%s of %s has %d bytes, limit %d", want, name, e.size, maxSmall)
		}
		if err := get(e); err != nil {
			return nil, err
		}
	}
	weights, err := weights(list, name, get, out.Folder)
	if err != nil {
		return nil, err
	}
	most := int64(maxWeights)
	if c.MaxBytes > 0 {
		most = min(most, c.MaxBytes)
	}
	left := most
	for _, e := range weights {
		if left -= e.size; left < 0 {
			return nil, fmt.Errorf("the weights of %s are larger than %d bytes", name, most)
		}
	}
	for _, e := range weights {
		if err := get(e); err != nil {
			return nil, err
		}
	}
	if revision == commit {
		return out, nil
	}
	ref := filepath.Join(repo, "refs", filepath.FromSlash(revision))
	if err := os.MkdirAll(filepath.Dir(ref), 0o755); err != nil {
		return nil, fmt.Errorf("refs of %s: %w", name, err)
	}
	return out, durable.Replace(ref, []byte(commit), 0o644)
}

// revisionName is a branch, a tag or a commit.
var revisionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,200}$`)

// weights are the files of a model's safetensors, one or those of its index.
func weights(list map[string]entry, name string, get func(entry) error, folder string) ([]entry, error) {
	if e, ok := list[model.WeightsFile]; ok {
		return []entry{e}, nil
	}
	index, ok := list[model.IndexFile]
	if !ok {
		return nil, fmt.Errorf("%s has no %s: where it has weights in another format, transformers writes one with "+
			"AutoModel.from_pretrained(%q).save_pretrained(FOLDER)", name, model.WeightsFile, name)
	}
	if index.size > maxSmall {
		return nil, fmt.Errorf("%s of %s has %d bytes, limit %d", model.IndexFile, name, index.size, maxSmall)
	}
	if err := get(index); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(folder, model.IndexFile))
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", model.IndexFile, name, err)
	}
	names, err := model.ShardNames(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var shards []entry
	for _, shard := range names {
		e, ok := list[shard]
		if !ok {
			return nil, fmt.Errorf("%s of %s names %.200q, which is not in the same folder", model.IndexFile, name, shard)
		}
		shards = append(shards, e)
	}
	return shards, nil
}

// list asks for a revision's commit and files.
func (c *Client) list(ctx context.Context, name, revision string) (commit string, list map[string]entry, err error) {
	at := c.Endpoint + "/api/models/" + name + "/revision/" + url.PathEscape(revision) + "?blobs=true"
	var text []byte
	err = c.retry(ctx, func(ctx context.Context, alive func()) (bool, error) {
		resp, err := c.ask(ctx, at, 0)
		if op := new(net.OpError); errors.As(err, &op) && op.Op == "dial" && ctx.Err() == nil {
			return false, &statusError{fmt.Sprintf("%v; %s", err, c.byHand(name)), ErrOffline}
		}
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return false, c.refused(resp, name, revision)
		}
		if text, err = io.ReadAll(io.LimitReader(&watched{resp.Body, alive}, maxListing+1)); err != nil {
			return false, fmt.Errorf("the hub's list of %s: %w", name, err)
		}
		return false, nil
	})
	if err != nil {
		return "", nil, err
	}
	if len(text) > maxListing {
		return "", nil, fmt.Errorf("the hub's list of %s is longer than %d bytes", name, maxListing)
	}
	var doc struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
			Size int64  `json:"size"`
			Blob string `json:"blobId"`
			LFS  *struct {
				Size   int64  `json:"size"`
				SHA256 string `json:"sha256"`
			} `json:"lfs"`
		} `json:"siblings"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return "", nil, fmt.Errorf("the hub's answer about %s: %w", name, err)
	}
	if !commitName.MatchString(doc.SHA) || len(doc.Siblings) > maxFiles {
		return "", nil, fmt.Errorf("the hub's answer about %s has the commit %.80q and %d files", name, doc.SHA, len(doc.Siblings))
	}
	list = map[string]entry{}
	for _, s := range doc.Siblings {
		e := entry{s.Name, s.Size, s.Blob}
		if s.LFS != nil {
			e = entry{s.Name, s.LFS.Size, s.LFS.SHA256}
		}
		// Others are not asked for: a name is only ever one of ours, or a shard's.
		if e.size >= 0 && hashName.MatchString(e.hash) && (len(e.hash) == 64) == (s.LFS != nil) {
			list[e.name] = e
		}
	}
	return doc.SHA, list, nil
}

// hashName is a SHA-256, or the SHA-1 of a blob of git.
var hashName = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// byHand says how a model gets here without the hub.
func (c *Client) byHand(name string) string {
	return fmt.Sprintf(`without it:
  run "starling base fetch %s" (or "hf download %s") on a machine that reaches it,
    and copy %s from its cache into
    %s
  or copy the model's %s, %s and %s into a folder, for --base
  or name a mirror in HF_ENDPOINT`,
		name, name, filepath.Base(folder("", name)), c.Cache, model.ConfigFile, model.TokenizerFile, model.WeightsFile)
}

// refused explains a status.
func (c *Client) refused(resp *http.Response, name, revision string) error {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &statusError{text: fmt.Sprintf("%s answers %s: there is no model %s, or it is private or gated: set HF_TOKEN to a token that may read it",
			c.Endpoint, resp.Status, name)}
	case http.StatusNotFound:
		return &statusError{text: fmt.Sprintf("%s has no model %s with the revision %s", c.Endpoint, name, revision)}
	case http.StatusTooManyRequests:
		return fmt.Errorf("%s answers %s", c.Endpoint, resp.Status)
	}
	if resp.StatusCode >= 500 {
		return fmt.Errorf("%s answers %s", c.Endpoint, resp.Status)
	}
	return &statusError{text: fmt.Sprintf("%s answers %s", c.Endpoint, resp.Status)}
}

// link makes a file of the cache part of a commit's snapshot: by a relative link to its
// blob, or a copy where the system makes none, as huggingface_hub does.
func link(repo, commit string, e entry) error {
	at := filepath.Join(repo, "snapshots", commit, filepath.FromSlash(e.name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	blob := filepath.Join(repo, "blobs", e.hash)
	to, err := filepath.Rel(filepath.Dir(at), blob)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if now, err := os.Readlink(at); err == nil && now == to {
		return nil
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("snapshot: %w", err)
	}
	err = os.Symlink(to, at)
	if err == nil || runtime.GOOS != "windows" {
		return err
	}
	from, err := os.Open(blob)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	defer from.Close()
	return durable.ReplaceFrom(at, from, 0o644)
}
