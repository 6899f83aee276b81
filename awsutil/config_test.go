package awsutil

import (
	"testing"

	"github.com/aws/smithy-go/logging"
)

// TestTheSDKIsSilent: its own lines would stand between ours, in another form.
func TestTheSDKIsSilent(t *testing.T) {
	t.Parallel()
	c, err := LoadConfig(t.Context(), LoadOptions{Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	if _, silent := c.Logger.(logging.Nop); !silent {
		t.Errorf("it logs to a %T", c.Logger)
	}
}
