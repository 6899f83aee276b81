package awsutil

import (
	"bytes"
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

func withoutWriterTo(
	ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler,
) (middleware.BuildOutput, middleware.Metadata, error) {
	if r, ok := in.Request.(*smithyhttp.Request); ok {
		if body, ok := r.GetStream().(io.ReadSeeker); ok {
			hidden, err := r.SetStream(seekReader{body})
			if err != nil {
				return middleware.BuildOutput{}, middleware.Metadata{},
					fmt.Errorf("prepare the request's body: %w", err)
			}
			in.Request = hidden
		}
	}
	return next.HandleBuild(ctx, in)
}

// keepBody copies the body of the answer of a call.
func keepBody(into *[]byte) func(*middleware.Stack) error {
	keep := func(ctx context.Context, in middleware.DeserializeInput,
		next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, meta, err := next.HandleDeserialize(ctx, in)
		response, ok := out.RawResponse.(*smithyhttp.Response)
		if err != nil || !ok {
			return out, meta, err
		}
		body := response.Body
		defer body.Close()
		if *into, err = io.ReadAll(body); err != nil {
			err = fmt.Errorf("read the answer: %w", err)
		}
		response.Body = io.NopCloser(bytes.NewReader(*into))
		return out, meta, err
	}
	return func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("KeepBody", keep), middleware.After)
	}
}
