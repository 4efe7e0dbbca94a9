// Package bucket stores a job's base, first adapter and releases in an S3-compatible bucket, which
// owners on different machines share. Base and adapter go by the SHA-256 of their content.
//
//	b, err := bucket.Open("s3://models/fleet?region=eu-1")
//	...
//	err = b.Fetch(ctx, sum, size, file) // what is fetched has that hash
//
// Threat model: anyone who runs the bucket may withhold anything. What is fetched by a hash is bounded
// by a size known beforehand, and used only once its hash is verified. Of a release only a few
// numbers are read, which can do no more than prevent a start. Anyone who may read the bucket can read
// released models and bases.
package bucket

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

var (
	// ErrURL: an address that names no bucket, or no credentials for it.
	ErrURL = errors.New("bucket")
	// ErrAbsent: the bucket has nothing of that name.
	ErrAbsent = errors.New("there is no such object")
	// ErrContent: an object's content does not have the hash that names it.
	ErrContent = errors.New("the content does not have the hash in its name")
)

// Bounds of an exchange.
const (
	patience  = 30 * time.Second // and as long again for each leastRate bytes
	leastRate = 64 << 10         // bytes a second
	mostSmall = 1 << 20          // bytes of what is read whole
	tries     = 3                // of a request that was not answered, or with a failure of the server
)

// Both may become parts of a host's name.
var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
)

// Bucket is a place in a bucket. It may be used from any goroutine.
type Bucket struct {
	name, prefix string
	at           string // for errors
	patience     time.Duration
	client       *minio.Core
}

// Open parses s3://BUCKET/PREFIX, with ?endpoint=https://HOST:PORT if it is not Amazon's, and
// &region=. It sends no request.
func Open(text string) (*Bucket, error) {
	wrong := func(format string, args ...any) (*Bucket, error) {
		return nil, fmt.Errorf("%w: %s; want s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION", ErrURL, fmt.Sprintf(format, args...))
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil { // which may hold a secret
		return wrong("the address cannot be read, or has credentials in it, which belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if u.Scheme != "s3" || !bucketName.MatchString(u.Host) || u.Fragment != "" {
		return wrong("%.200q", text)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return wrong("%.200q: %v", text, err)
	}
	for key := range q {
		if key != "endpoint" && key != "region" {
			return wrong("%.40q is not a parameter", key)
		}
	}
	b := &Bucket{name: u.Host, prefix: strings.Trim(path.Clean("/"+u.Path), "/"), patience: patience}
	region := cmp.Or(q.Get("region"), "us-east-1") // what those that have no regions are called by
	if !regionName.MatchString(region) {
		return wrong("the region %.40q", region)
	}
	endpoint, lookup := &url.URL{Scheme: "https", Host: "s3." + region + ".amazonaws.com"}, minio.BucketLookupDNS
	if text := q.Get("endpoint"); text != "" {
		lookup = minio.BucketLookupPath
		if endpoint, err = url.Parse(text); err != nil || endpoint.Scheme != "https" && endpoint.Scheme != "http" || endpoint.Host == "" ||
			endpoint.User != nil || strings.Trim(endpoint.Path, "/") != "" || endpoint.RawQuery != "" {
			return wrong("the endpoint is not an address of a host, or has credentials or a path in it")
		}
	}
	creds, err := findCredentials()
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrURL, u.Host, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression, transport.ResponseHeaderTimeout = true, patience
	b.client, err = minio.NewCore(endpoint.Host, &minio.Options{Creds: creds, Secure: endpoint.Scheme == "https", Region: region,
		BucketLookup: lookup, Transport: brief{transport}, MaxRetries: tries})
	if err != nil {
		return wrong("%v", err)
	}
	b.at = fmt.Sprintf("s3://%s at %s", path.Join(u.Host, b.prefix), endpoint.Host)
	return b, nil
}

// InClear reports whether requests go to another machine without TLS, so that the network can read the models.
func (b *Bucket) InClear() bool {
	u := b.client.EndpointURL()
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// String is the bucket's address.
func (b *Bucket) String() string { return b.at }

// Below returns the place name below this one in the same bucket.
func (b *Bucket) Below(name string) *Bucket {
	sub := *b
	sub.prefix = path.Join(b.prefix, name)
	return &sub
}

func blobName(sum [32]byte) string { return "blobs/" + hex.EncodeToString(sum[:]) }

// limited ends an exchange that lasts longer than its bytes may: size of them.
func (b *Bucket) limited(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	d := b.patience + time.Duration(size/leastRate)*time.Second
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("the bucket takes longer than %v", d.Round(time.Second)))
}

// said is an error with the bucket's name.
func (b *Bucket) said(ctx context.Context, what, name string, err error) error {
	if err = refusal(err); ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("bucket %s: %s %s: %w", b.at, what, path.Join(b.prefix, name), err)
}

// Keep stores content under its hash, unless an object of that size is there.
func (b *Bucket) Keep(ctx context.Context, sum [32]byte, content io.ReaderAt, size int64) error {
	ctx, cancel := b.limited(ctx, size)
	defer cancel()
	name := blobName(sum)
	there, err := b.client.StatObject(ctx, b.name, path.Join(b.prefix, name), minio.StatObjectOptions{})
	if err == nil && there.Size == size {
		return nil
	}
	if err != nil && !errors.Is(refusal(err), ErrAbsent) {
		return b.said(ctx, "look for", name, err)
	}
	return b.put(ctx, name, sum, io.NewSectionReader(content, 0, size))
}

// put writes an object by one request that is signed with its hash, which the bucket holds the
// content against: it appears whole or not at all. One that was cut off begins again.
func (b *Bucket) put(ctx context.Context, name string, sum [32]byte, content *io.SectionReader) error {
	_, err := b.client.PutObject(ctx, b.name, path.Join(b.prefix, name), content, content.Size(), "", hex.EncodeToString(sum[:]),
		minio.PutObjectOptions{DisableContentSha256: true}) // of chunks; that of the whole is signed
	if err != nil {
		return b.said(ctx, "put", name, err)
	}
	return nil
}

// putSmall writes what is in memory.
func (b *Bucket) putSmall(ctx context.Context, name string, data []byte) error {
	ctx, cancel := b.limited(ctx, int64(len(data)))
	defer cancel()
	return b.put(ctx, name, sha256.Sum256(data), io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))))
}

// Fetch writes the object with the given hash and size to w, and verifies it at the end: w's
// content must not be used if there is an error.
func (b *Bucket) Fetch(ctx context.Context, sum [32]byte, size int64, w io.Writer) error {
	h := sha256.New()
	return b.get(ctx, blobName(sum), size, io.MultiWriter(h, w), func(n int64) error {
		if n != size || [32]byte(h.Sum(nil)) != sum {
			return fmt.Errorf("%w: %d bytes or more, want %d of that SHA-256. Remove it, and start an owner that has the file: it uploads it again", ErrContent, n, size)
		}
		return nil
	})
}

// get copies an object to w, of which most bytes are asked for and one more, and has its
// length checked.
func (b *Bucket) get(ctx context.Context, name string, most int64, w io.Writer, check func(n int64) error) error {
	ctx, cancel := b.limited(ctx, most)
	defer cancel()
	body, _, _, err := b.client.GetObject(ctx, b.name, path.Join(b.prefix, name), minio.GetObjectOptions{})
	if err == nil {
		var n int64
		if n, err = io.Copy(w, io.LimitReader(body, most+1)); err != nil {
			err = fmt.Errorf("cut off after %d bytes: %w", n, err)
		} else {
			err = check(n)
		}
		err = errors.Join(err, body.Close())
	}
	if err != nil {
		return b.said(ctx, "get", name, err)
	}
	return nil
}
