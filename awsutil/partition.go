package awsutil

import (
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/internal/retry"
)

// endpoint is where a service of AWS answers and the region it signs for.
type endpoint struct {
	url, region string
}

// iamEndpoint returns IAM's global endpoint of a partition (AWS General
// Reference, "AWS Identity and Access Management endpoints and quotas").
func iamEndpoint(partition string) (endpoint, error) {
	switch partition {
	case "aws":
		return endpoint{"https://iam.amazonaws.com/", "us-east-1"}, nil
	case "aws-cn":
		return endpoint{"https://iam.cn-north-1.amazonaws.com.cn/", "cn-north-1"}, nil
	case "aws-us-gov":
		return endpoint{"https://iam.us-gov.amazonaws.com/", "us-gov-west-1"}, nil
	}
	return endpoint{}, &retry.PermanentError{Err: fmt.Errorf(
		"no IAM endpoint is known for AWS partition %q: set consulLogin.includeEntity to false and list the exact "+
			"role ARNs in the auth method", partition)}
}

// stsEndpoint returns the regional STS endpoint, or custom when that is set.
func stsEndpoint(custom, region, partition string) endpoint {
	if custom != "" {
		if !strings.Contains(custom, "://") {
			custom = "https://" + custom
		}
		return endpoint{strings.TrimRight(custom, "/") + "/", region}
	}
	suffix := "amazonaws.com"
	if partition == "aws-cn" {
		suffix = "amazonaws.com.cn"
	}
	return endpoint{"https://sts." + region + "." + suffix + "/", region}
}

// partitionOf returns the AWS partition of a region, for callers that know no ARN.
func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
