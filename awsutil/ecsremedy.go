package awsutil

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"
)

// permissionRemedy adds to an error the IAM permission that a call lacks, or that there were no
// credentials. The SDK has no type for the latter.
func permissionRemedy(action string, err error) error {
	var answer smithy.APIError
	switch {
	case errors.As(err, &answer) && answer.ErrorCode() == "AccessDeniedException":
		return fmt.Errorf("%w: allow %s in a policy of this process's role (taskRoleArn)", err, action)
	case err != nil && strings.Contains(err.Error(), "get credentials: "):
		return fmt.Errorf("%w: run this process with a role (taskRoleArn) whose policy allows %s", err, action)
	}
	return err
}
