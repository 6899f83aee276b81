package iam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const maxBody = 64 << 10

// New returns STS and IAM in one handler. It answers on every path: the
// service is the one the request was signed for, and the path is part of the
// signature. A Consul auth method's STSEndpoint and IAMEndpoint must therefore
// be without a path, http://<host>:<port>: Consul puts the endpoint's path in
// front of the signed one. It relays the Host header that was signed, so
// requests signed for AWS's own hosts verify here.
//
// Region is the region STS is asked in; the global region of its partition is
// always accepted. AWS's IAM takes no other; consul-ecs builds after 0.6 sign IAM
// with the STS region when STS has a configured endpoint, so IAM takes both.
func New(store *Store, region string) http.Handler {
	return &handler{store: store, verifier: Verifier{
		Store: store, Services: []string{"sts", "iam"}, Regions: []string{
			region, shapes.Account{Region: region}.GlobalRegion(),
		},
	}}
}

type handler struct {
	store    *Store
	verifier Verifier
}

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
		writeAWSError(w, "", &Error{status, "MalformedInput", "Request body cannot be read."})
		return
	}
	key, service, refused := h.verifier.Verify(r.Context(), r, body, ConditionOf(r).Shift(time.Now()))
	if refused != nil {
		writeAWSError(w, ClaimedService(r), refused)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.ParseForm() != nil {
		writeAWSError(w, service, &Error{400, "MalformedQueryString", "The query string contains a syntax error."})
		return
	}
	id := uuid.New().String()
	result, bad := h.run(call{service, key, r.Form, ConditionOf(r).NoTags}, id)
	if bad != nil {
		writeAWSError(w, service, bad)
		return
	}
	writeXML(w, http.StatusOK, id, result)
}

func (h *handler) run(c call, requestID string) (any, *Error) {
	action, version := c.params.Get("Action"), c.params.Get("Version")
	if action == "" {
		return nil, &Error{400, "MissingAction", "Request is missing the Action parameter."}
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
	return nil, &Error{400, "InvalidAction", fmt.Sprintf("Could not find operation %s for version %s", action, version)}
}

// JSON answers with v, which encoding/json can hold, and the status.
func JSON(w http.ResponseWriter, status int, v any) {
	text, _ := json.Marshal(v)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(text) // an error means the client is gone
}
