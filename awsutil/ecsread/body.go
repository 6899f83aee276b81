package ecsread

import (
	"context"
	"fmt"
	"io"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// seekReader hides all that a body can do but these two.
type seekReader struct{ io.ReadSeeker }

// hideWriterTo takes WriteTo from a call's body. The SDK closes the body as soon
// as there is an answer, when net/http may still look whether more of it comes: a
// closed one's Read returns io.EOF, but its WriteTo fails. Then net/http
// cuts the connection while the answer is read from it, and the SDK tries again.
// That takes a body beyond net/http's buffer of 4 KiB, as a lookup of a hundred
// tasks has, and an answer before the writer has had its turn.
func hideWriterTo(stack *middleware.Stack) error {
	return stack.Build.Add(middleware.BuildMiddlewareFunc("HideWriterTo", withoutWriterTo), middleware.After)
}

func withoutWriterTo(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
	if r, ok := in.Request.(*smithyhttp.Request); ok {
		if body, ok := r.GetStream().(io.ReadSeeker); ok {
			hidden, err := r.SetStream(seekReader{body})
			if err != nil {
				return middleware.BuildOutput{}, middleware.Metadata{}, fmt.Errorf("prepare the request's body: %w", err)
			}
			in.Request = hidden
		}
	}
	return next.HandleBuild(ctx, in)
}
