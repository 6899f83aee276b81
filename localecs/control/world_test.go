package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentLeadsToTheRun(t *testing.T) {
	t.Parallel()
	theirs := []string{
		"PATH=/bin", "AWS_PROFILE=prod", "AWS_SESSION_TOKEN=x", "AWS_REGION=eu-west-1", "https_proxy=http://proxy", "HTTP_PROXY=p",
		"CONSUL_HTTP_ADDR=http://127.0.0.1:8500", "CONSUL_HTTP_SSL=true", "AWS_CA_BUNDLE=/ca", "EMPTY=",
	}
	own := []string{"AWS_REGION=us-east-1", "CONSUL_HTTP_ADDR=http://10.42.0.254:8500"}
	want := []string{"PATH=/bin", "AWS_CA_BUNDLE=/ca", "EMPTY=", "AWS_REGION=us-east-1", "CONSUL_HTTP_ADDR=http://10.42.0.254:8500"}
	if diff := cmp.Diff(want, environment(theirs, own)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(theirs) != 10 || theirs[1] != "AWS_PROFILE=prod" {
		t.Errorf("the caller's is changed: %q", theirs)
	}
}
