package images

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Failure is an image that could not be locked.
type Failure struct {
	// Image is the reference, as it is written.
	Image string
	// Where is a place that needs the image, such as a file and a container.
	Where string
	// Err has the cause and the cure.
	Err error
}

// maxReason bounds what a message repeats of another program's text.
const maxReason = 400

// Error returns one line: the image, the place, the cause, and the cure.
func (f *Failure) Error() string {
	place := ""
	if f.Where != "" {
		place = " (" + f.Where + ")"
	}
	return taskdef.OneLine("image " + f.Image + place + ": " + f.Err.Error())
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// plainHTTPError is about a host on another machine that has no TLS.
type plainHTTPError struct{ host string }

func (e *plainHTTPError) Error() string { return e.host + " has no TLS" }

// timeoutError ends the reading of an image.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// credentialError is about the user's credentials.
type credentialError struct{ err error }

func (e *credentialError) Error() string { return e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }

// explain turns an error into the text of a failure: what the registry did, and the cure.
func explain(ctx context.Context, registry string, err error) error {
	if registry == "index.docker.io" {
		registry = "docker.io"
	}
	if credentials, is := errors.AsType[*credentialError](err); is {
		const text = "the credentials for %s cannot be read (%s): check credsStore, credHelpers and auths in " +
			"Docker's config.json"
		return fmt.Errorf(text, registry, brief(credentials))
	}
	if untrusted, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return fmt.Errorf("%s has a certificate that is not trusted (%s): name the authority's certificate in "+
			"SSL_CERT_FILE, or correct the name",
			registry, brief(untrusted.Err))
	}
	if refused, is := errors.AsType[*transport.Error](err); is {
		if demand, is := errors.AsType[*pauseError](err); is {
			answer, _ := answerOf(refused)
			return fmt.Errorf("%s demands a pause of %s (%s): log in with `docker login %s` for a higher limit, "+
				"raise -timeout, or repeat it then",
				registry, demand.pause.Round(time.Second), answer, registry)
		}
		return errors.New(refusal(registry, refused))
	}
	if timeout, is := errors.AsType[*timeoutError](context.Cause(ctx)); is {
		return fmt.Errorf("%s did not answer within %s: check the network and the name, raise -timeout, or read a "+
			"copy by -from",
			registry, timeout.after)
	}
	if plain, is := errors.AsType[*plainHTTPError](err); is && plain.host != registry {
		return fmt.Errorf("%s refers to %s, which has no TLS: add it, or allow plain HTTP by -plain-http %s",
			registry, plain.host, plain.host)
	}
	return explainRequest(registry, err)
}

// explainRequest explains an error that has no type.
func explainRequest(registry string, err error) error {
	text := err.Error()
	_, plain := errors.AsType[*plainHTTPError](err)
	_, requested := errors.AsType[*url.Error](err)
	switch {
	case plain, strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%s has no TLS: add it, or allow plain HTTP by -plain-http %s", registry, registry)
	case strings.HasPrefix(text, "invalid realm"): // the library has no type for it
		return fmt.Errorf("%s names a token server that is refused (%s): have it name its own host, or read "+
			"a copy by -from",
			registry, brief(err))
	case requested:
		return fmt.Errorf("%s cannot be reached (%s): check the network and the name, or read a copy by -from",
			registry, brief(cause(err)))
	}
	return err
}

// answerOf returns the status of a registry's answer with its text, and its code.
func answerOf(e *transport.Error) (answer string, code transport.ErrorCode) {
	if len(e.Errors) == 0 {
		return fmt.Sprintf("%d %s", e.StatusCode, http.StatusText(e.StatusCode)), ""
	}
	code = e.Errors[0].Code
	text := strings.TrimSuffix(string(code)+": "+e.Errors[0].Message, ": ")
	return fmt.Sprintf("%d %s", e.StatusCode, brief(errors.New(text))), code
}

// refusal returns what a registry answered, and the cure.
func refusal(registry string, e *transport.Error) string {
	answer, code := answerOf(e)
	switch {
	case e.StatusCode == http.StatusTooManyRequests:
		return fmt.Sprintf("%s limits reads (%s): log in with `docker login %s` for a higher limit, or repeat it later",
			registry, answer, registry)
	case e.StatusCode == http.StatusUnauthorized, e.StatusCode == http.StatusForbidden:
		return fmt.Sprintf("%s refuses it (%s): log in with `docker login %s`, and check the name: many registries "+
			"refuse what does not exist",
			registry, answer, registry)
	case code == transport.NameUnknownErrorCode:
		return fmt.Sprintf("%s has no such repository (%s): check the name", registry, answer)
	case e.StatusCode == http.StatusNotFound:
		return fmt.Sprintf("%s has no such tag or digest (%s): check the tag, or push the image", registry, answer)
	}
	return fmt.Sprintf("%s failed (%s): repeat it later, or read a copy by -from", registry, answer)
}

// cause returns the innermost request's error without its URL.
func cause(err error) error {
	for {
		request, is := errors.AsType[*url.Error](err)
		if !is {
			return err
		}
		err = cmp.Or(request.Err, errors.New(request.Op))
	}
}

// brief returns the beginning of a text that another program wrote.
func brief(err error) string {
	text := err.Error()
	if len(text) > maxReason {
		text = text[:maxReason] + "…"
	}
	return text
}
