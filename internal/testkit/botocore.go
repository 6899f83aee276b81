package testkit

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// ECSModel returns botocore's model of the ECS API, by which the AWS command line and boto3 check what they
// send, as JSON.
func ECSModel(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(Root(), ".tools", "aws", "botocore", "data", "ecs", "2014-11-13", "service-2.json.gz")
	file, err := os.Open(path)
	if err != nil {
		Missing(t, "botocore's model of ECS is missing, tools/ensure.sh aws installs it: "+err.Error())
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
