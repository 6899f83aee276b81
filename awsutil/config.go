package awsutil

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// RequestTimeout bounds every request that this package sends itself, and those for the
// credentials of the task role.
const RequestTimeout = 5 * time.Second

// LoadOptions are what a caller wants different from the SDK's default chain.
type LoadOptions struct {
	// Region wins over everything.
	Region string
	// DefaultRegion, the task ARN's, is used when neither Region nor the SDK's
	// environment and shared configuration name one.
	DefaultRegion string
	// UserAgent and Version name the program to AWS: "consul-ecs", "v1.2.3".
	UserAgent, Version string
}

// userAgent returns the User-Agent of requests that we build ourselves.
func (o LoadOptions) userAgent() string {
	return fmt.Sprintf("%s/%s (%s)", o.UserAgent, o.Version, runtime.GOOS)
}

// nameProgram puts the program before the SDK's own user agent: operators look
// for it at the beginning in CloudTrail.
func (o LoadOptions) nameProgram(stack *middleware.Stack) error {
	if err := awsmiddleware.AddRequestUserAgentMiddleware(stack); err != nil {
		return err
	}
	return stack.Build.Insert(middleware.BuildMiddlewareFunc("ProgramName", func(ctx context.Context,
		in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
		if r, ok := in.Request.(*smithyhttp.Request); ok {
			r.Header.Set("User-Agent", o.userAgent()+" "+r.Header.Get("User-Agent"))
		}
		return next.HandleBuild(ctx, in)
	}), "UserAgent", middleware.After)
}

// LoadConfig runs the SDK's default chain, shared configuration files included
// (AWS_SDK_LOAD_CONFIG is not needed). It does no network I/O; credentials are
// fetched when first used.
func LoadConfig(ctx context.Context, o LoadOptions, more ...func(*config.LoadOptions) error) (aws.Config, error) {
	opts := append([]func(*config.LoadOptions) error{
		config.WithDefaultRegion(o.DefaultRegion),
		// The SDK would write its own lines between ours, JSON or not. What matters
		// is in its errors.
		config.WithLogger(logging.Nop{}),
		// The SDK's own client waits for an answer without a limit.
		config.WithEndpointCredentialOptions(func(o *endpointcreds.Options) {
			o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(RequestTimeout)
		}),
	}, more...)
	if o.Region != "" {
		opts = append(opts, config.WithRegion(o.Region))
	}
	if o.UserAgent != "" {
		opts = append(opts, config.WithAPIOptions([]func(*middleware.Stack) error{o.nameProgram}))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("load the AWS configuration: %w", err)
	}
	return cfg, nil
}

// watchTaskRole makes the SDK's container credentials provider send its
// requests through w, once each: our callers retry, and log it.
func watchTaskRole(w *taskRole) func(*config.LoadOptions) error {
	return config.WithEndpointCredentialOptions(func(o *endpointcreds.Options) {
		o.HTTPClient = w
		o.Retryer = aws.NopRetryer{}
	})
}
