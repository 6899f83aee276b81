package iam

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// maxBody bounds a request's body; Query API calls are far smaller.
const maxBody = 64 << 10

// Options are what the handler needs to know.
type Options struct {
	// Store has the roles, users and keys.
	Store *Store
	// Region is the region STS is asked in; the global region of its partition is
	// always accepted. AWS's IAM takes no other; consul-ecs builds after 0.6 sign IAM
	// with the STS region when it has an endpoint of its own, so IAM takes both.
	Region string
}

// New returns STS and IAM in one handler. It answers on every path: the
// service is the one the request was signed for, and the path is part of the
// signature. A Consul auth method's STSEndpoint and IAMEndpoint must therefore
// be without a path, http://<host>:<port>: Consul puts the endpoint's path in
// front of the signed one. It relays the Host header that was signed, so
// requests signed for AWS's own hosts verify here.
func New(o Options) http.Handler {
	return &handler{store: o.Store, verifier: Verifier{
		Store: o.Store, Services: []string{"sts", "iam"}, Regions: []string{o.Region, shapes.Account{Region: o.Region}.GlobalRegion()},
	}}
}

type handler struct {
	store    *Store
	verifier Verifier
}

// call is one verified request.
type call struct {
	service string
	key     Key
	params  url.Values
	noTags  bool
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		writeAWSError(w, "", &apiError{status, "MalformedInput", "Request body cannot be read."})
		return
	}
	key, service, refused := h.verifier.Verify(r.Context(), r, body, Of(r).Now())
	if refused != nil {
		writeAWSError(w, ClaimedService(r), &apiError{refused.Status, refused.Code, refused.Message})
		return
	}
	params, bad := parseParams(r, body)
	if bad == nil {
		var result any
		id := uuid.New().String()
		if result, bad = h.run(call{service, key, params, Of(r).NoTags}, id); bad == nil {
			writeXML(w, http.StatusOK, id, result)
			return
		}
	}
	writeAWSError(w, service, bad)
}

// parseParams joins the query string and a form body.
func parseParams(r *http.Request, body []byte) (url.Values, *apiError) {
	params, err := url.ParseQuery(r.URL.RawQuery)
	form := url.Values{}
	if err == nil && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, err = url.ParseQuery(string(body))
	}
	if err != nil {
		return nil, &apiError{400, "MalformedQueryString", "The query string contains a syntax error."}
	}
	for name, values := range form {
		params[name] = append(params[name], values...)
	}
	return params, nil
}

// run runs the action of the service the call was signed for.
func (h *handler) run(c call, requestID string) (any, *apiError) {
	action, version := c.params.Get("Action"), c.params.Get("Version")
	if action == "" {
		return nil, &apiError{400, "MissingAction", "Request is missing the Action parameter."}
	}
	meta := responseMetadata{RequestID: requestID}
	switch c.service + ":" + action + ":" + version {
	case "sts:GetCallerIdentity:2011-06-15":
		return getCallerIdentity(c, meta), nil
	case "iam:GetRole:2010-05-08":
		return h.getRole(c, meta)
	case "iam:GetUser:2010-05-08":
		return h.getUser(c, meta)
	}
	return nil, &apiError{400, "InvalidAction", fmt.Sprintf("Could not find operation %s for version %s", action, version)}
}
