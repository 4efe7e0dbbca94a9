package bucket

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// mostError is how many bytes of an answer that is an error are read: minio-go reads 5 MiB, and drains the rest.
const mostError = 64 << 10

// brief is a transport whose errors are short.
type brief struct{ http.RoundTripper }

func (t brief) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil && answer.StatusCode/100 != 2 {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, mostError), answer.Body}
	}
	return answer, err
}

// refusal returns an error of minio-go with the next step; others as they are.
func refusal(err error) error {
	var said minio.ErrorResponse
	if !errors.As(err, &said) {
		return err
	}
	todo := ""
	switch {
	case said.Code == minio.NoSuchBucket:
		todo = "; create it, or correct --blobs"
	case said.StatusCode == http.StatusNotFound || said.Code == minio.NoSuchKey:
		return ErrAbsent
	case said.StatusCode == http.StatusForbidden || said.StatusCode == http.StatusUnauthorized:
		todo = "; the credentials must be allowed s3:GetObject, s3:PutObject and s3:ListBucket there"
	case said.StatusCode/100 == 3 || said.Region != "":
		todo = fmt.Sprintf("; give the bucket's own ?region=%.40s and endpoint", said.Region)
	}
	return fmt.Errorf("it answers %d %.60q %.300q%s", said.StatusCode, said.Code, said.Message, todo)
}

// findCredentials reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the
// profile AWS_PROFILE of the file AWS_SHARED_CREDENTIALS_FILE.
func findCredentials() (*credentials.Credentials, error) {
	from := credentials.NewEnvAWS()
	got, err := from.GetWithContext(nil)
	if err == nil && got.AccessKeyID != "" && got.SecretAccessKey != "" {
		return from, nil
	}
	name := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if name == "" {
		return nil, errors.New("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE")
	}
	from = credentials.NewFileAWSCredentials(name, "")
	if got, err = from.GetWithContext(nil); err != nil {
		return nil, fmt.Errorf("AWS_SHARED_CREDENTIALS_FILE: %w", err)
	}
	if got.AccessKeyID == "" || got.SecretAccessKey == "" {
		return nil, fmt.Errorf("AWS_SHARED_CREDENTIALS_FILE: %s has no aws_access_key_id and aws_secret_access_key of profile %.40q", name, os.Getenv("AWS_PROFILE"))
	}
	return from, nil
}
