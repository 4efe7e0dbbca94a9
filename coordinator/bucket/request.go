package bucket

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"
)

// tries is how often is asked what was not answered, or with a failure of the server.
const tries = 3

// nothing is the hash of no content.
var nothing = sha256.Sum256(nil)

// ask makes one request, signed with its content's hash; content may be nil. The caller closes
// the answer's body.
func (b *Bucket) ask(ctx context.Context, method, name string, content *io.SectionReader, sum [32]byte) (*http.Response, error) {
	for try := 1; ; try++ {
		answer, again, err := b.once(ctx, method, name, content, sum)
		if err == nil || !again || try == tries {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Duration(try) * 500 * time.Millisecond):
		}
	}
}

func (b *Bucket) once(ctx context.Context, method, name string, content *io.SectionReader, sum [32]byte) (answer *http.Response, again bool, err error) {
	var body io.Reader // nil without content
	if content != nil && content.Size() > 0 {
		body = io.NopCloser(io.NewSectionReader(content, 0, content.Size()))
	}
	r, err := http.NewRequestWithContext(ctx, method, b.root.JoinPath(path.Join(b.prefix, name)).String(), body)
	if err != nil {
		return nil, false, err
	}
	if content != nil {
		r.ContentLength = content.Size()
	}
	r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	answer, err = b.client.Do(signer.SignV4(*r, b.creds.id, b.creds.secret, b.creds.session, b.region))
	if err != nil {
		return nil, true, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer, false, nil
	}
	defer answer.Body.Close()
	return nil, answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests, refusal(answer)
}

// refusal is what a bucket says with an answer that is none, and what to do.
func refusal(answer *http.Response) error {
	var said struct{ Code, Message, Region string }
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostError))
	if err == nil {
		err = xml.Unmarshal(text, &said)
	}
	if err != nil { // it says no more than its status
		said.Code = ""
	}
	todo := ""
	switch {
	case said.Code == "NoSuchBucket":
		todo = "; make it, or mend --blobs"
	case answer.StatusCode == http.StatusNotFound:
		return ErrAbsent
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized:
		todo = "; the credentials must be allowed s3:GetObject, s3:PutObject and s3:ListBucket there"
	case answer.StatusCode/100 == 3 || said.Region != "":
		todo = fmt.Sprintf("; give the bucket's own ?region=%.40s and endpoint", cmp.Or(said.Region, answer.Header.Get("X-Amz-Bucket-Region")))
	}
	return fmt.Errorf("it answers %d %.60q %.300q%s", answer.StatusCode, said.Code, said.Message, todo)
}

// credentials sign requests.
type credentials struct{ id, secret, session string }

// findCredentials takes them from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN, or from the profile AWS_PROFILE of the file AWS_SHARED_CREDENTIALS_FILE.
func findCredentials() (credentials, error) {
	c := credentials{os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")}
	name := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if c.id != "" && c.secret != "" {
		return c, nil
	}
	if name == "" {
		return c, errors.New("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE")
	}
	file, err := os.Open(name)
	if err != nil {
		return c, fmt.Errorf("AWS_SHARED_CREDENTIALS_FILE: %w", err)
	}
	defer file.Close()
	profile := cmp.Or(os.Getenv("AWS_PROFILE"), "default")
	values, in := map[string]string{}, ""
	for lines := bufio.NewScanner(io.LimitReader(file, mostSmall)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if section, ok := strings.CutPrefix(line, "["); ok {
			in = strings.TrimSpace(strings.TrimSuffix(section, "]"))
		} else if key, value, ok := strings.Cut(line, "="); ok && in == profile {
			values[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	c = credentials{values["aws_access_key_id"], values["aws_secret_access_key"], values["aws_session_token"]}
	if c.id == "" || c.secret == "" {
		return c, fmt.Errorf("AWS_SHARED_CREDENTIALS_FILE: %s has no aws_access_key_id and aws_secret_access_key of profile %.40q", name, profile)
	}
	return c, nil
}
