package awsutil

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/time/rate"
)

// callMeter holds each attempt until the budget has room, and counts it.
type callMeter struct {
	budget           *rate.Limiter
	calls, throttles atomic.Int64
}

func newCallMeter(callsPerSecond float64) *callMeter {
	return &callMeter{budget: rate.NewLimiter(rate.Limit(callsPerSecond), max(1, int(2*callsPerSecond)))}
}

// install puts the meter behind the SDK's retries, so that each passes it.
func (m *callMeter) install(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Budget", m.finalize), "Retry", middleware.After)
}

func (m *callMeter) finalize(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (middleware.FinalizeOutput, middleware.Metadata, error) {
	if err := m.budget.Wait(ctx); err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{},
			fmt.Errorf("wait for the budget of AWS calls: %w", err)
	}
	m.calls.Add(1)
	out, meta, err := next.HandleFinalize(ctx, in)
	if throttled(err) {
		m.throttles.Add(1)
	}
	return out, meta, err
}

// throttled reports whether AWS refused an attempt because there were too many.
func throttled(err error) bool {
	api, answered := errors.AsType[smithy.APIError](err)
	if !answered {
		return false
	}
	_, ok := retry.DefaultThrottleErrorCodes[api.ErrorCode()]
	return ok
}

// refused reports whether AWS refused a call for its input: the next one has another.
func refused(err error) bool {
	_, parameter := errors.AsType[*types.InvalidParameterException](err)
	_, client := errors.AsType[*types.ClientException](err)
	return parameter || client
}
