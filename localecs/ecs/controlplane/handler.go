package controlplane

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const (
	// maxBody bounds a request's body; a task definition has 64 KiB at most.
	maxBody = 1 << 20
	// targetPrefix stands before the operation's name in X-Amz-Target.
	targetPrefix = "AmazonEC2ContainerServiceV20141113."
	contentType  = "application/x-amz-json-1.1"
)

// HandlerOptions configure the handler.
type HandlerOptions struct {
	// Store has the keys of callers, and what they may do.
	Store  *iam.Store
	Region string
	// Operations are by name.
	Operations map[string]Operation
	// Buckets throttle calls; nil throttles none.
	Buckets Buckets
	Log     hclog.Logger
}

// NewHandler returns the ECS API.
func NewHandler(o HandlerOptions) http.Handler {
	return &handler{
		options: o, verifier: iam.Verifier{
			Store: o.Store, Services: []string{"ecs"}, Regions: []string{o.Region},
		},
	}
}

// IsECSRequest reports whether a request is for the ECS API, which shares its address
// with others.
func IsECSRequest(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("X-Amz-Target"), targetPrefix)
}

type handler struct {
	options  HandlerOptions
	verifier iam.Verifier
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	id := uuid.New().String()
	answer, err := h.answer(r, now)
	if err != nil {
		status, body := problem(err)
		h.options.Log.Debug("ECS call was refused", logkey.Operation, operationName(r), logkey.Error, err)
		write(w, status, id, body)
		return
	}
	if iam.ConditionOf(r).NoTags {
		answer = withoutTags(answer)
	}
	write(w, http.StatusOK, id, answer)
}

// Fail writes a failure of the ECS API: 429 stands for its throttling, which has
// status 400; 500 and 503 are themselves.
func Fail(w http.ResponseWriter, status int) {
	id := uuid.New().String()
	switch status {
	case http.StatusTooManyRequests:
		write(w, http.StatusBadRequest, id, errorBody{Type: shapes.ThrottlingException, Message: throttled().Message})
	case http.StatusServiceUnavailable:
		write(w, status, id, errorBody{Type: "ServiceUnavailable",
			Message: "The request has failed due to a temporary failure of the server."})
	default:
		write(w, status, id, errorBody{Type: shapes.ServerException,
			Message: "Service Unavailable. Please try again later."})
	}
}

func operationName(r *http.Request) string {
	name, _ := strings.CutPrefix(r.Header.Get("X-Amz-Target"), targetPrefix)
	return name
}

func (h *handler) answer(r *http.Request, now time.Time) (any, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil || len(body) > maxBody {
		return nil, shapes.Errorf("SerializationException", "The request cannot be read.")
	}
	key, _, refused := h.verifier.Verify(r.Context(), r, body, iam.ConditionOf(r).Shift(now))
	if refused != nil {
		return nil, authentication(refused)
	}
	name := operationName(r)
	operation := h.options.Operations[name]
	if operation == nil || r.Method != http.MethodPost {
		return nil, shapes.Errorf("UnknownOperationException", "localecs does not have the operation %q.", name)
	}
	if action := "ecs:" + name; !h.options.Store.Allows(key, action) {
		return nil, shapes.Errorf(shapes.AccessDeniedException,
			"User: %s is not authorized to perform: %s because no identity-based policy allows the %s action",
			key.Principal.ARN, action, action)
	}
	if !h.options.Buckets.take(name, now) {
		return nil, throttled()
	}
	return operation(shapes.Call{Now: now, Principal: key.Principal.ARN}, body)
}

func throttled() *shapes.Error { return shapes.Errorf(shapes.ThrottlingException, "Rate exceeded") }

// authentication translates the codes of the Query API into those of AWS's JSON
// services.
func authentication(e *iam.Error) error {
	code := cmp.Or(map[string]string{
		"MissingAuthenticationToken": "MissingAuthenticationTokenException",
		"IncompleteSignature":        "IncompleteSignatureException",
		"SignatureDoesNotMatch":      "InvalidSignatureException",
		"InvalidClientTokenId":       "UnrecognizedClientException",
		"ExpiredToken":               "ExpiredTokenException",
	}[e.Code], e.Code)
	return shapes.Errorf(code, "%s", e.Message)
}

type errorBody struct {
	Type        string   `json:"__type"`
	Message     string   `json:"message,omitzero"`
	ResourceIDs []string `json:"resourceIds,omitzero"`
}

// problem returns an error's status and body. What is no *shapes.Error is a fault of localecs.
func problem(err error) (int, errorBody) {
	if e, ok := errors.AsType[*shapes.Error](err); ok {
		return http.StatusBadRequest, errorBody{Type: e.Code, Message: e.Message, ResourceIDs: e.ResourceIDs}
	}
	return http.StatusInternalServerError, errorBody{Type: shapes.ServerException, Message: err.Error()}
}

func write(w http.ResponseWriter, status int, requestID string, v any) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // fails only for a type that JSON cannot hold
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("x-amzn-RequestId", requestID)
	w.WriteHeader(status)
	w.Write(bytes.TrimSuffix(body.Bytes(), []byte("\n"))) // an error means the client is gone
}
